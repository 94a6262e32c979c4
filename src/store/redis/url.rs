//! Parses URLs of servers, sentinels and clusters.

use std::path::PathBuf;
use std::sync::Arc;

use percent_encoding::percent_decode_str;

use super::address::{Address, Endpoint, Login};
use super::tls::Tls;
use crate::error::ValidationError;

const FORMS: &str = "redis://host, redis://user:password@host:6379/0, redis+unix:///run/redis.sock, \
                     redis+sentinel://host:26379,host:26379/name or redis+cluster://host:6379,host:6379; \
                     rediss instead of redis for TLS; valkey and valkeys mean the same";
const DATABASE: &str = "the number of a database at the end; a password that has / ? # @ : or % in it \
                        is written with %2F %3F %23 %40 %3A %25";
const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26_379;

/// Servers that a URL names.
#[derive(Clone, Debug)]
pub(super) enum RedisTarget {
    /// One server.
    One(Address),
    /// The primary that these sentinels name.
    Sentinels {
        sentinels: Vec<Address>,
        name: String,
        /// Credentials for the primary.
        login: Arc<Login>,
    },
    /// Seeds of a cluster.
    Cluster(Vec<Address>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrangement {
    Tcp,
    Unix,
    Sentinel,
    Cluster,
}

impl RedisTarget {
    /// Parses a URL. Errors do not contain user and password.
    pub(super) fn parse(url: &str) -> Result<Self, ValidationError> {
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

impl RedisTarget {
    /// Returns whether connections use TLS.
    pub(super) fn is_tls(&self) -> bool {
        match self {
            Self::One(address) => address.login.is_tls,
            Self::Sentinels { login, .. } => login.is_tls,
            Self::Cluster(seeds) => seeds.iter().any(|seed| seed.login.is_tls),
        }
    }

    /// Sets the TLS settings.
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

/// Parses a scheme. Returns the arrangement, and whether it is TLS.
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

fn read_login(
    text: &str,
    wrong: impl Fn(&'static str) -> ValidationError,
) -> Result<Login, ValidationError> {
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

fn refuse(url: &str, expected: &'static str) -> ValidationError {
    ValidationError::new("redis url", url, expected)
}

/// Removes what comes before the last `@`. Without a host, the password is where a port should be.
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
mod tests;
