//! Where Redis is, and who we are to it.

use std::fmt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use crate::error::Invalid;

const FORMS: &str =
    "redis://host, redis://user:password@host:6379/0 or redis+unix:///run/redis.sock";
const DEFAULT_PORT: u16 = 6379;

/// What a URL says.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) endpoint: Endpoint,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) database: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl Address {
    /// Reads a URL. Problems are told without its user and password.
    pub(super) fn parse(url: &str) -> Result<Self, Invalid> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| refuse(&redacted(url), FORMS))?;
        let is_unix = match scheme {
            "redis" | "valkey" => false,
            "redis+unix" | "valkey+unix" | "unix" => true,
            _ => return Err(refuse(&redacted(url), FORMS)),
        };
        let wrong = |expected: &'static str| refuse(&redacted(url), expected);
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let (login, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let decoded = |text: &str| match percent_decode_str(text).decode_utf8() {
            Ok(text) if text.is_empty() => Ok(None),
            Ok(text) => Ok(Some(text.into_owned())),
            Err(_) => Err(wrong("a user and a password in UTF-8")),
        };
        let mut address = Self {
            endpoint: Endpoint::Unix(PathBuf::from(path)),
            user: decoded(user)?,
            password: decoded(password)?,
            database: 0,
        };
        if address.user.is_some() && address.password.is_none() {
            return Err(wrong(
                "a password with the user: redis://user:password@host",
            ));
        }
        let database = if is_unix {
            if !host.is_empty() || path.len() < 2 {
                return Err(wrong(
                    "a path after three slashes: redis+unix:///run/redis.sock",
                ));
            }
            query.strip_prefix("db=")
        } else {
            address.endpoint = tcp(host).ok_or_else(|| wrong("a host and, if need be, a port"))?;
            path.strip_prefix('/')
        };
        if let Some(number) = database.filter(|number| !number.is_empty()) {
            let hint = "the number of a database after the host; a password that has / ? # @ : or % \
                        in it is written with %2F %3F %23 %40 %3A %25";
            address.database = number.parse().map_err(|_| wrong(hint))?;
        }
        let known_query = query.is_empty() || is_unix && query.starts_with("db=");
        if !known_query || url.contains('#') {
            return Err(wrong("nothing after the database"));
        }
        Ok(address)
    }
}

/// `host`, `host:port`, `[::1]` or `[::1]:port`.
fn tcp(host: &str) -> Option<Endpoint> {
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
        None if port.is_empty() => DEFAULT_PORT,
        None => return None,
    };
    (!host.is_empty()).then(|| Endpoint::Tcp {
        host: host.to_owned(),
        port,
    })
}

fn refuse(url: &str, expected: &'static str) -> Invalid {
    Invalid::new("redis url", url, expected)
}

/// A URL without what comes before its last `@`.
fn redacted(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}…@{host}"),
        None => format!("{scheme}{rest}"),
    }
}

/// The host and the port, or the path.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Endpoint::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Endpoint::Tcp { host, port } => write!(f, "{host}:{port}"),
            Endpoint::Unix(path) => path.display().fmt(f),
        }
    }
}

/// Without the password, and without the user.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address")
            .field("endpoint", &self.endpoint)
            .field("user", &self.user.as_ref().map(|_| "…"))
            .field("password", &self.password.as_ref().map(|_| "…"))
            .field("database", &self.database)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let tcp = |host: &str, port| Endpoint::Tcp {
            host: host.to_owned(),
            port,
        };
        for (url, endpoint, user, password, database) in [
            ("redis://localhost", tcp("localhost", 6379), None, None, 0),
            ("valkey://cache:7000/3", tcp("cache", 7000), None, None, 3),
            ("redis://:s3@h/", tcp("h", 6379), None, Some("s3"), 0),
            (
                "redis://app:p%40ss%2F@h:1/2",
                tcp("h", 1),
                Some("app"),
                Some("p@ss/"),
                2,
            ),
            ("redis://[::1]:6380", tcp("::1", 6380), None, None, 0),
            (
                "redis+unix:///run/redis.sock?db=4",
                Endpoint::Unix("/run/redis.sock".into()),
                None,
                None,
                4,
            ),
            (
                "unix://:word@/r.sock",
                Endpoint::Unix("/r.sock".into()),
                None,
                Some("word"),
                0,
            ),
        ] {
            let read = Address::parse(url).expect(url);
            assert_eq!(read.endpoint, endpoint, "{url}");
            assert_eq!(read.user.as_deref(), user, "{url}");
            assert_eq!(read.password.as_deref(), password, "{url}");
            assert_eq!(read.database, database, "{url}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_without_the_password() {
        for url in [
            "localhost:6379",
            "http://app:hunter2@h",
            "redis://app:hunter2@",
            "redis://app:hunter2@h:port",
            "redis://app:hunter2@h/one",
            "redis://app:hunter2@h/1?timeout=5",
            "redis://app:hunter2@h/1#x",
            "redis://app:hunter2@[::1/0",
            "redis://app@h",
            "redis+unix://app:hunter2@host/r.sock",
            "redis+unix://",
        ] {
            let refused = Address::parse(url).expect_err(url);
            let told = format!("{refused} {refused:?}");
            assert_eq!(refused.field(), "redis url");
            assert!(!told.contains("hunter2"), "{told}");
            assert!(!told.contains("app"), "{told}");
        }
        let address = Address::parse("redis://app:hunter2@h").expect("valid");
        assert!(!format!("{address:?} {address}").contains("hunter2"));
        // A slash in a password ends it, and then nothing makes sense; it must not be shown.
        let refused = Address::parse("redis://app:hun/ter2@h").expect_err("a slash");
        assert!(!refused.to_string().contains("ter2"), "{refused}");
    }
}
