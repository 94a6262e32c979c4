//! Messages of errors. Each names the server, and what to check if a person has to act.

use std::fmt;

use super::{Cause, RedisStoreError};

impl fmt::Display for RedisStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.place;
        match &self.cause {
            Cause::Unreachable(error) => write!(f, "Redis at {place} cannot be reached: {error}"),
            Cause::Lost(error) => write!(
                f,
                "the connection to Redis at {place} was lost, outcome unknown: {error}"
            ),
            Cause::ClosedByServer => write!(f, "Redis at {place} closed the connection"),
            Cause::Late(within) => {
                write!(f, "Redis at {place} has not answered within {within:?}")
            }
            Cause::NotConnected(within) => {
                write!(f, "no connection to Redis at {place} within {within:?}")
            }
            Cause::Unsent(within) => write!(
                f,
                "Redis at {place} has not answered earlier calls within {within:?}; this one was \
                 not sent"
            ),
            Cause::QueueFull => write!(f, "the request queue of Redis at {place} is full"),
            Cause::TlsExpected => write!(
                f,
                "Redis at {place} expects TLS; use rediss:// instead of redis:// in the URL"
            ),
            Cause::PlainExpected => write!(
                f,
                "Redis at {place} does not use TLS on this port; use redis:// instead of rediss:// \
                 in the URL, or the TLS port of the server"
            ),
            Cause::Handshake(error) => write!(
                f,
                "the TLS handshake with Redis at {place} failed: {error}; check the certificate of \
                 the server, and whether `root_certificates` contains its issuer"
            ),
            Cause::OutOfMemory(error) => write!(
                f,
                "Redis at {place} has no memory for more counters: {error}; raise `maxmemory`, or \
                 limit the callers that create counters"
            ),
            Cause::NotPersisted(error) => write!(
                f,
                "Redis at {place} rejects writes because it cannot save its data: {error}; check \
                 the disk and the log of the server"
            ),
            Cause::Refused(error) => write!(
                f,
                "Redis at {place} rejects the credentials: {error}; check user and password in the URL"
            ),
            Cause::Forbidden(error) => write!(
                f,
                "Redis at {place} denies a permission: {error}; check what the user is allowed, \
                 and on which keys"
            ),
            Cause::ReadOnly(error) => {
                write!(f, "Redis at {place} is a read-only replica: {error}")
            }
            Cause::Demoted => write!(f, "Redis at {place} is no longer the primary"),
            Cause::UnknownPrimary(name) => write!(
                f,
                "no sentinel has a primary `{name}`; check the name after the hosts in the URL"
            ),
            Cause::Redirected(_, error) => write!(
                f,
                "Redis at {place} is a node of a cluster: {error}; the URL of a cluster begins with \
                 redis+cluster://"
            ),
            Cause::NoOwner(slot) => write!(
                f,
                "no node of the Redis cluster at {place} has slot {slot}; it may be migrating"
            ),
            Cause::Failed(error) => write!(f, "Redis at {place} failed: {error}"),
            Cause::UnexpectedReply => write!(f, "Redis at {place} sent an unexpected reply"),
            Cause::TooManyOverrides(max) => write!(
                f,
                "Redis at {place} has more overrides than the maximum of {max}; remove some, or raise \
                 `max_overrides`"
            ),
            Cause::OverridesNotLoaded => {
                write!(f, "the overrides in Redis at {place} are not loaded yet")
            }
            Cause::NoRuntime => write!(
                f,
                "the runtime on which the store for Redis at {place} was built has ended"
            ),
        }
    }
}
