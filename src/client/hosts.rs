//! All hosts that are known, and no more than there is room for.

use std::sync::Arc;

use http::header::HOST;
use http::uri::Authority;
use http::{Request, Uri};
use quick_cache::sync::Cache;

use super::host::Host;
use super::retry_budget::RetryBudget;

/// Bounded, since a list of links may name any number of hosts. The host that is asked least is
/// forgotten first, and with it what it has said; requests on their way keep theirs.
#[derive(Debug)]
pub(super) struct Hosts {
    known: Cache<String, Arc<Host>>,
}

impl Hosts {
    pub(super) fn new(most: usize) -> Self {
        Self {
            known: Cache::new(most),
        }
    }

    /// What is known about a host, or nothing yet.
    pub(super) fn get(&self, name: &str) -> Option<Arc<Host>> {
        self.known.peek(name)
    }

    pub(super) fn get_or_insert(
        &self,
        name: &str,
        budget: impl FnOnce() -> RetryBudget,
    ) -> Arc<Host> {
        let made = self.known.get_or_insert_with(name, || {
            Ok::<_, std::convert::Infallible>(Arc::new(Host::new(name, budget())))
        });
        match made {
            Ok(host) => host,
            Err(never) => match never {},
        }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}

/// No name in the DNS is longer.
const LONGEST: usize = 255;

/// The host that a request goes to, and the port, if it is not the usual one: `example.com`,
/// `127.0.0.1:3000`. Empty, if the request does not say, or names what can be no host: links may
/// come from anybody, and what is remembered of each must not be as long as they like.
pub(super) fn host_of<B>(request: &Request<B>) -> String {
    let uri = request.uri();
    if let Some(authority) = uri.authority() {
        return plain(uri, authority);
    }
    let header = request.headers().get(HOST);
    let authority = header.and_then(|value| Authority::try_from(value.as_bytes()).ok());
    authority.map_or_else(String::new, |authority| plain(uri, &authority))
}

fn plain(uri: &Uri, authority: &Authority) -> String {
    let host = authority.host().to_ascii_lowercase();
    if host.len() > LONGEST {
        return String::new();
    }
    match (authority.port_u16(), uri.scheme_str()) {
        (None, _) | (Some(80), Some("http")) | (Some(443), Some("https")) => host,
        (Some(port), _) => format!("{host}:{port}"),
    }
}

/// One of the callers' own keys at a host. A host has no spaces.
pub(super) fn keyed(mut host: String, key: &str) -> String {
    host.push(' ');
    host.push_str(key);
    host
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_has_one_name() {
        for (uri, name) in [
            ("http://Example.COM/a?b", "example.com"),
            ("http://example.com:80/", "example.com"),
            ("https://user:secret@example.com:443/", "example.com"),
            ("http://example.com:443/", "example.com:443"),
            ("http://[::1]:3000/", "[::1]:3000"),
            ("/only/a/path", ""),
        ] {
            let request = Request::get(uri).body(()).unwrap();
            assert_eq!(host_of(&request), name, "{uri}");
        }
        let request = Request::get("/").header("host", "Example.com:8080");
        assert_eq!(host_of(&request.body(()).unwrap()), "example.com:8080");
        let request = Request::get("/").header("host", "not a host");
        assert_eq!(host_of(&request.body(()).unwrap()), "");
        let long = format!("http://{}.test:3000/", "a".repeat(60_000));
        let request = Request::get(long).body(()).unwrap();
        assert_eq!(host_of(&request), "");
    }
}
