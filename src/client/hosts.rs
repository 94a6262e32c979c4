//! Bounded table of hosts.

use std::sync::Arc;

use http::header::HOST;
use http::uri::Authority;
use http::{Request, Uri};
use quick_cache::sync::Cache;

use super::host::Host;
use super::retry_budget::RetryBudget;

/// Hosts by name. Bounded, because a list of URLs may name any number of hosts: the least used host
/// is evicted with its limits. Requests in flight keep theirs.
#[derive(Debug)]
pub(super) struct Hosts {
    known: Cache<String, Arc<Host>>,
}

impl Hosts {
    pub(super) fn new(max: usize) -> Self {
        Self {
            known: Cache::new(max),
        }
    }

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

/// The longest name in the DNS.
const MAX_HOST: usize = 255;

/// Returns the host of a request, and the port if it is not the default: `example.com`,
/// `127.0.0.1:3000`. Empty if there is none, or if it is too long for a host: URLs may be chosen by
/// others, and the name is stored.
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
    if host.len() > MAX_HOST {
        return String::new();
    }
    match (authority.port_u16(), uri.scheme_str()) {
        (None, _) | (Some(80), Some("http")) | (Some(443), Some("https")) => host,
        (Some(port), _) => format!("{host}:{port}"),
    }
}

/// Returns the name of a key at a host. A host has no spaces.
pub(super) fn keyed(mut host: String, key: &str) -> String {
    host.push(' ');
    host.push_str(key);
    host
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_host_have_one_name() {
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
