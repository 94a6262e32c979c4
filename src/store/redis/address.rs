//! Address and credentials of a server.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::tls::Tls;

/// Address of a server, and credentials for it.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) endpoint: Endpoint,
    pub(super) login: Arc<Login>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Endpoint {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

/// Credentials, database and TLS settings.
#[derive(Clone, Default)]
pub(super) struct Login {
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) database: u16,
    pub(super) is_tls: bool,
    /// Set when the store is built, if `is_tls`.
    pub(super) tls: Option<Tls>,
}

impl Address {
    pub(super) fn new(endpoint: Endpoint, login: Arc<Login>) -> Self {
        Self { endpoint, login }
    }

    /// Returns another server with the same credentials.
    pub(super) fn with_endpoint(&self, endpoint: Endpoint) -> Self {
        Self::new(endpoint, Arc::clone(&self.login))
    }

    /// Sets the TLS settings.
    pub(super) fn secure(&mut self, tls: &Tls) {
        Arc::make_mut(&mut self.login).tls = Some(tls.clone());
    }

    /// Text for error messages.
    pub(super) fn place(&self) -> Arc<str> {
        self.to_string().into()
    }
}

impl Endpoint {
    /// Parses `host`, `host:port`, `[::1]` or `[::1]:port`.
    pub(super) fn tcp(host: &str, default_port: u16) -> Option<Self> {
        let (host, port) = match host.strip_prefix('[') {
            Some(bracketed) => {
                let (address, rest) = bracketed.split_once(']')?;
                address.parse::<std::net::Ipv6Addr>().ok()?;
                (address, rest)
            }
            None => host.split_at(host.find(':').unwrap_or(host.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().ok()?,
            None if port.is_empty() => default_port,
            None => return None,
        };
        (!host.is_empty()).then(|| Self::Tcp {
            host: host.to_owned(),
            port,
        })
    }

    /// Resolves an address that this server has announced. A server that does not know its own host
    /// announces an empty one: then it is the host of this server.
    pub(super) fn resolve(&self, host: &str, port: u16) -> Self {
        let host = match (host, self) {
            ("" | "?", Self::Tcp { host, .. }) => host.clone(),
            ("" | "?", Self::Unix(_)) => "localhost".to_owned(),
            (host, _) => host.to_owned(),
        };
        Self::Tcp { host, port }
    }
}

impl Login {
    /// Returns these settings without credentials.
    pub(super) fn without_password(&self) -> Self {
        Self {
            user: None,
            password: None,
            ..self.clone()
        }
    }

    /// Returns these settings for a sentinel, which has no databases.
    pub(super) fn of_sentinel(&self) -> Self {
        Self {
            database: 0,
            ..self.clone()
        }
    }
}

/// Host and port, or the path.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Endpoint::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Endpoint::Tcp { host, port } => write!(f, "{host}:{port}"),
            Endpoint::Unix(path) => path.display().fmt(f),
        }
    }
}

/// Without user and password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user.as_ref().map(|_| "…"))
            .field("password", &self.password.as_ref().map(|_| "…"))
            .field("database", &self.database)
            .field("is_tls", &self.is_tls)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_parsed() {
        let tcp = |host: &str, port| {
            Some(Endpoint::Tcp {
                host: host.to_owned(),
                port,
            })
        };
        assert_eq!(Endpoint::tcp("h", 1), tcp("h", 1));
        assert_eq!(Endpoint::tcp("h:2", 1), tcp("h", 2));
        assert_eq!(Endpoint::tcp("[::1]", 1), tcp("::1", 1));
        assert_eq!(Endpoint::tcp("[::1]:2", 1), tcp("::1", 2));
        for wrong in ["", ":1", "h:", "h:x", "[::1", "[h]:1", "[::1]2"] {
            assert_eq!(Endpoint::tcp(wrong, 1), None, "{wrong}");
        }
    }

    #[test]
    fn empty_host_means_the_announcing_server() {
        let announcing = Endpoint::tcp("h", 7).expect("a host");
        assert_eq!(Some(announcing.resolve("", 8)), Endpoint::tcp("h:8", 0));
        assert_eq!(
            Some(announcing.resolve("10.0.0.1", 8)),
            Endpoint::tcp("10.0.0.1:8", 0)
        );
    }
}
