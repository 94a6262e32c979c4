//! URLs: where Redis is, in which arrangement, and who we are to it.

use std::path::PathBuf;
use std::sync::Arc;

use percent_encoding::percent_decode_str;

use super::address::{Address, Endpoint, Login};
use super::tls::Tls;
use crate::error::Invalid;

const FORMS: &str = "redis://host, redis://user:password@host:6379/0, redis+unix:///run/redis.sock, \
                     redis+sentinel://host:26379,host:26379/name or redis+cluster://host:6379,host:6379; \
                     rediss instead of redis for TLS";
const DATABASE: &str = "the number of a database at the end; a password that has / ? # @ : or % in it \
                        is written with %2F %3F %23 %40 %3A %25";
const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26_379;

/// What a URL leads to.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// One server.
    One(Address),
    /// Whichever server these sentinels say is the primary of this name.
    Sentinels {
        sentinels: Vec<Address>,
        name: String,
        /// Who we are to the primary.
        login: Arc<Login>,
    },
    /// The cluster that these are of.
    Cluster(Vec<Address>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrangement {
    Tcp,
    Unix,
    Sentinel,
    Cluster,
}

impl Target {
    /// Reads a URL. Problems are told without its user and password.
    pub(super) fn parse(url: &str) -> Result<Self, Invalid> {
        let wrong = |expected: &'static str| refuse(&redacted(url), expected);
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong(FORMS))?;
        let (arrangement, is_tls) = arrangement(scheme).ok_or_else(|| wrong(FORMS))?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let mut login = read_login(login, wrong)?;
        login.is_tls = is_tls;
        let is_unix = arrangement == Arrangement::Unix;
        let known_query = query.is_empty() || is_unix && query.starts_with("db=");
        if !known_query || url.contains('#') {
            return Err(wrong("nothing after the database"));
        }
        let after_host = path.strip_prefix('/').unwrap_or_default();
        let database = match arrangement {
            Arrangement::Unix => query.strip_prefix("db=").unwrap_or_default(),
            Arrangement::Sentinel => after_host
                .split_once('/')
                .map_or("", |(_, database)| database),
            Arrangement::Tcp | Arrangement::Cluster => after_host,
        };
        if !database.is_empty() {
            login.database = database.parse().map_err(|_| wrong(DATABASE))?;
        }
        if arrangement == Arrangement::Unix {
            if !hosts.is_empty() || path.len() < 2 {
                return Err(wrong(
                    "a path after three slashes: redis+unix:///run/redis.sock",
                ));
            }
            let path = PathBuf::from(path);
            return Ok(Self::One(Address::new(
                Endpoint::Unix(path),
                Arc::new(login),
            )));
        }
        let port = match arrangement {
            Arrangement::Sentinel => SENTINEL_PORT,
            _ => PORT,
        };
        let hosts: Option<Vec<_>> = hosts
            .split(',')
            .map(|host| Endpoint::tcp(host, port))
            .collect();
        let hosts = hosts.ok_or_else(|| wrong("a host and, if need be, a port"))?;
        let cluster_database = login.database;
        let name = after_host.split('/').next().unwrap_or_default();
        let login = Arc::new(login);
        match arrangement {
            Arrangement::Sentinel => {
                if name.is_empty() {
                    return Err(wrong(
                        "the primary's name after the hosts, as the sentinels know it",
                    ));
                }
                let as_sentinel = Arc::new(login.of_sentinel());
                let sentinels = hosts
                    .into_iter()
                    .map(|host| Address::new(host, Arc::clone(&as_sentinel)));
                Ok(Self::Sentinels {
                    sentinels: sentinels.collect(),
                    name: name.to_owned(),
                    login,
                })
            }
            Arrangement::Cluster if cluster_database != 0 => {
                Err(wrong("no database: a cluster has but one"))
            }
            Arrangement::Cluster => {
                let seeds = hosts
                    .into_iter()
                    .map(|host| Address::new(host, Arc::clone(&login)));
                Ok(Self::Cluster(seeds.collect()))
            }
            Arrangement::Tcp | Arrangement::Unix => match <[Endpoint; 1]>::try_from(hosts) {
                Ok([host]) => Ok(Self::One(Address::new(host, login))),
                Err(_) => Err(wrong(
                    "one host; several are for redis+cluster:// and redis+sentinel://",
                )),
            },
        }
    }
}

impl Target {
    /// Whether the servers have to prove who they are.
    pub(super) fn is_tls(&self) -> bool {
        match self {
            Self::One(address) => address.login.is_tls,
            Self::Sentinels { login, .. } => login.is_tls,
            Self::Cluster(seeds) => seeds.iter().any(|seed| seed.login.is_tls),
        }
    }

    /// Talks to nobody whom these do not trust.
    pub(super) fn secure(&mut self, tls: &Tls) {
        match self {
            Self::One(address) => address.secure(tls),
            Self::Sentinels {
                sentinels, login, ..
            } => {
                for sentinel in sentinels {
                    sentinel.secure(tls);
                }
                Arc::make_mut(login).tls = Some(tls.clone());
            }
            Self::Cluster(seeds) => {
                for seed in seeds {
                    seed.secure(tls);
                }
            }
        }
    }
}

/// What a scheme means, and whether it means TLS.
fn arrangement(scheme: &str) -> Option<(Arrangement, bool)> {
    let (server, arrangement) = match scheme.split_once(['+', '-']) {
        Some((server, "unix")) => (server, Arrangement::Unix),
        Some((server, "sentinel")) => (server, Arrangement::Sentinel),
        Some((server, "cluster")) => (server, Arrangement::Cluster),
        None if scheme == "unix" => ("redis", Arrangement::Unix),
        None => (scheme, Arrangement::Tcp),
        Some(_) => return None,
    };
    match (server, arrangement) {
        ("redis" | "valkey", arrangement) => Some((arrangement, false)),
        ("rediss" | "valkeys", Arrangement::Unix) => None,
        ("rediss" | "valkeys", arrangement) => Some((arrangement, true)),
        _ => None,
    }
}

fn read_login(text: &str, wrong: impl Fn(&'static str) -> Invalid) -> Result<Login, Invalid> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let decoded = |text: &str| match percent_decode_str(text).decode_utf8() {
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => Ok(Some(text.into_owned())),
        Err(_) => Err(wrong("a user and a password in UTF-8")),
    };
    let login = Login {
        user: decoded(user)?,
        password: decoded(password)?,
        ..Login::default()
    };
    if login.user.is_some() && login.password.is_none() {
        return Err(wrong(
            "a password with the user: redis://user:password@host",
        ));
    }
    Ok(login)
}

fn refuse(url: &str, expected: &'static str) -> Invalid {
    Invalid::new("redis url", url, expected)
}

/// A URL without what comes before its last `@`. Whoever has forgotten the host has a password
/// where a port should be.
fn redacted(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}…@{host}"),
        None if has_strange_port(rest) => format!("{scheme}…"),
        None => format!("{scheme}{rest}"),
    }
}

fn has_strange_port(rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let mut ports = authority
        .split(',')
        .filter_map(|host| host.rsplit_once(':'));
    ports.any(|(_, port)| !port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(url: &str) -> Address {
        match Target::parse(url).expect(url) {
            Target::One(address) => address,
            other => panic!("{other:?}"),
        }
    }

    fn tcp(host: &str, port: u16) -> Endpoint {
        Endpoint::Tcp {
            host: host.to_owned(),
            port,
        }
    }

    fn endpoints(addresses: &[Address]) -> Vec<Endpoint> {
        let endpoints = addresses.iter().map(|address| address.endpoint.clone());
        endpoints.collect()
    }

    #[test]
    fn urls_of_one_server_are_read() {
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
            let read = one(url);
            assert_eq!(read.endpoint, endpoint, "{url}");
            assert_eq!(read.login.user.as_deref(), user, "{url}");
            assert_eq!(read.login.password.as_deref(), password, "{url}");
            assert_eq!(read.login.database, database, "{url}");
            assert!(!read.login.is_tls, "{url}");
        }
        assert!(one("rediss://h").login.is_tls && one("valkeys://h").login.is_tls);
    }

    #[test]
    fn urls_of_several_servers_are_read() {
        for scheme in ["redis+cluster", "rediss+cluster", "redis-cluster"] {
            let url = format!("{scheme}://:word@h1:7000,h2,[::1]:7002/");
            let Target::Cluster(seeds) = Target::parse(&url).expect("valid") else {
                panic!("{url}");
            };
            let expected = [tcp("h1", 7000), tcp("h2", 6379), tcp("::1", 7002)];
            assert_eq!(endpoints(&seeds), expected);
            assert_eq!(seeds[1].login.password.as_deref(), Some("word"));
            assert_eq!(seeds[2].login.is_tls, scheme == "rediss+cluster");
        }
        let url = "redis+sentinel://app:word@s1,s2:26380/main/2";
        let Target::Sentinels {
            sentinels,
            name,
            login,
        } = Target::parse(url).expect("valid")
        else {
            panic!("{url}");
        };
        assert_eq!(
            endpoints(&sentinels),
            [tcp("s1", 26_379), tcp("s2", 26_380)]
        );
        assert_eq!((name.as_str(), login.database), ("main", 2));
        assert_eq!(login.user.as_deref(), Some("app"));
        // A sentinel has no databases.
        assert_eq!(sentinels[0].login.database, 0);
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
            "redis://app:hunter2@h1,h2",
            "redis://app@h",
            "redis+unix://app:hunter2@host/r.sock",
            "redis+unix://",
            "rediss+unix:///r.sock",
            "redis+cluster://app:hunter2@h1,,h2",
            "redis+cluster://app:hunter2@h1/1",
            "redis+sentinel://app:hunter2@h1,h2",
            "redis+sentinel://app:hunter2@h1/main/one",
            "redis+ring://h",
            "redis://app:hunter2",
            "redis://:hunter2/0",
            "redis+unix://:hunter2/r.sock",
        ] {
            let refused = Target::parse(url).expect_err(url);
            let told = format!("{refused} {refused:?}");
            assert_eq!(refused.field(), "redis url");
            assert!(!told.contains("hunter2"), "{told}");
            assert!(!told.contains("app"), "{told}");
        }
        let target = Target::parse("redis://app:hunter2@h").expect("valid");
        assert!(!format!("{target:?}").contains("hunter2"));
        // A slash in a password ends it, and then nothing makes sense; it must not be shown.
        let refused = Target::parse("redis://app:hun/ter2@h").expect_err("a slash");
        assert!(!refused.to_string().contains("ter2"), "{refused}");
    }
}
