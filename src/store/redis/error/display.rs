//! Messages of errors. Each names the server and, if the configuration is wrong, what to check.

use std::fmt;

use super::{ErrorCause, RedisStoreError, UnusableServer};

impl fmt::Display for RedisStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.place;
        match &self.cause {
            ErrorCause::Unreachable(error) => {
                write!(f, "Redis at {place} cannot be reached: {error}")
            }
            ErrorCause::Lost(error) => write!(
                f,
                "the connection to Redis at {place} was lost, outcome unknown: {error}"
            ),
            ErrorCause::ClosedByServer => write!(f, "Redis at {place} closed the connection"),
            ErrorCause::Late(within) => {
                write!(f, "Redis at {place} has not answered within {within:?}")
            }
            ErrorCause::NotConnected(within) => {
                write!(f, "no connection to Redis at {place} within {within:?}")
            }
            ErrorCause::Unsent(within) => write!(
                f,
                "Redis at {place} has not answered earlier calls within {within:?}; this one was \
                 not sent"
            ),
            ErrorCause::QueueFull => write!(f, "the request queue of Redis at {place} is full"),
            ErrorCause::TlsExpected => write!(
                f,
                "Redis at {place} expects TLS; use rediss:// instead of redis:// in the URL"
            ),
            ErrorCause::PlainExpected => write!(
                f,
                "Redis at {place} does not use TLS on this port; use redis:// instead of rediss:// \
                 in the URL, or the TLS port of the server"
            ),
            ErrorCause::Handshake(error) => write!(
                f,
                "the TLS handshake with Redis at {place} failed: {error}; check the certificate of \
                 the server, and whether `root_certificates` contains its issuer"
            ),
            ErrorCause::OutOfMemory(error) => write!(
                f,
                "Redis at {place} has no memory for more counters: {error}; raise `maxmemory`, or \
                 limit the callers that create counters"
            ),
            ErrorCause::NotPersisted(error) => write!(
                f,
                "Redis at {place} rejects writes because it cannot save its data: {error}; check \
                 the disk and the log of the server"
            ),
            ErrorCause::Refused(error) => write!(
                f,
                "Redis at {place} rejects the credentials: {error}; check user and password in the URL"
            ),
            ErrorCause::Unusable(server) => server.fmt_at(place, f),
            ErrorCause::Forbidden(error) => write!(
                f,
                "Redis at {place} denies a permission: {error}; check what the user is allowed, \
                 and on which keys"
            ),
            ErrorCause::ReadOnly(error) => {
                write!(f, "Redis at {place} is a read-only replica: {error}")
            }
            ErrorCause::Demoted => write!(f, "Redis at {place} is no longer the primary"),
            ErrorCause::UnknownPrimary(name) => write!(
                f,
                "no sentinel has a primary `{name}`; check the name after the hosts in the URL"
            ),
            ErrorCause::Redirected(_, error) => write!(
                f,
                "Redis at {place} redirects a request again and again: {error}; the nodes of the \
                 cluster may disagree"
            ),
            ErrorCause::NoOwner(slot) => write!(
                f,
                "no node of the Redis cluster at {place} has slot {slot}; it may be migrating"
            ),
            ErrorCause::Failed(error) => write!(f, "Redis at {place} failed: {error}"),
            ErrorCause::UnexpectedReply => write!(f, "Redis at {place} sent an unexpected reply"),
            ErrorCause::TooManyOverrides(max) => write!(
                f,
                "Redis at {place} has more overrides than the maximum of {max}; remove some, or raise \
                 `max_overrides`"
            ),
            ErrorCause::UnreadableOverrides => write!(
                f,
                "the overrides in Redis at {place} have a format that this version cannot read; \
                 update this process"
            ),
            ErrorCause::OverridesNotLoaded => {
                write!(f, "the overrides in Redis at {place} are not loaded yet")
            }
            ErrorCause::NoRuntime => write!(
                f,
                "the runtime on which the store for Redis at {place} was built has ended"
            ),
        }
    }
}

impl UnusableServer {
    fn fmt_at(&self, place: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Without the reply, which is a page of text.
            Self::ProtectedMode(_) => write!(
                f,
                "Redis at {place} is in protected mode and rejects clients of other hosts; set a \
                 password on the server and in the URL, or `protected-mode no` on a private network"
            ),
            Self::RejectedDatabase(database, error) => write!(
                f,
                "Redis at {place} rejects database {database}: {error}; check the database in the \
                 URL, and whether the user is allowed SELECT"
            ),
            Self::NotSentinel(error) => write!(
                f,
                "Redis at {place} is not a sentinel: {error}; use redis:// in the URL, or the port \
                 of a sentinel"
            ),
            Self::ClusterNode(error) => write!(
                f,
                "Redis at {place} is a node of a cluster: {error}; the URL of a cluster begins with \
                 redis+cluster://"
            ),
            Self::NotRedis => write!(
                f,
                "the server at {place} is not a Redis server: its reply is not in the Redis \
                 protocol; check host and port in the URL"
            ),
        }
    }
}
