//! What can go wrong between us and Redis, in words for people.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};

use super::address::Address;
use crate::error::{StoreError, StoreErrorKind};

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    place: Arc<str>,
    cause: Cause,
}

#[derive(Clone, Debug)]
enum Cause {
    /// No connection could be made.
    Unreachable(RedisError),
    /// The connection ended before the answer came. It may have been charged.
    Lost(RedisError),
    /// It has ended the connection, as it may do when nobody has used it for a while.
    HungUp,
    /// It did not answer in time. It may have been charged.
    Late(Duration),
    /// There was no connection in time. Nothing was sent.
    NotYet(Duration),
    /// It does not know us.
    Refused(RedisError),
    /// It knows us, and may not do for us what we ask.
    Forbidden(RedisError),
    /// It is a replica, perhaps since a moment ago.
    ReadOnly(RedisError),
    /// It answered with an error.
    Failed(RedisError),
    /// It answered something else than it was asked.
    Nonsense,
    /// The runtime that the store was made on is gone.
    NoRuntime,
}

impl Trouble {
    fn new(address: &Address, cause: Cause) -> Self {
        Self {
            place: address.to_string().into(),
            cause,
        }
    }

    /// A connection could not be made.
    pub(super) fn connecting(address: &Address, error: RedisError) -> Self {
        let cause = if does_not_know_us(&error) {
            Cause::Refused(error)
        } else {
            Cause::Unreachable(error)
        };
        Self::new(address, cause)
    }

    /// A call failed.
    pub(super) fn calling(address: &Address, error: RedisError) -> Self {
        let cause = if does_not_know_us(&error) {
            Cause::Refused(error)
        } else if is_code(&error, ServerErrorKind::NoPerm, "NOPERM") {
            Cause::Forbidden(error)
        } else if is_code(&error, ServerErrorKind::ReadOnly, "READONLY") {
            Cause::ReadOnly(error)
        } else if error.is_io_error() {
            Cause::Lost(error)
        } else {
            Cause::Failed(error)
        };
        Self::new(address, cause)
    }

    pub(super) fn late(address: &Address, deadline: Duration) -> Self {
        Self::new(address, Cause::Late(deadline))
    }

    pub(super) fn not_yet(address: &Address, deadline: Duration) -> Self {
        Self::new(address, Cause::NotYet(deadline))
    }

    pub(super) fn hung_up(address: &Address) -> Self {
        Self::new(address, Cause::HungUp)
    }

    pub(super) fn nonsense(address: &Address) -> Self {
        Self::new(address, Cause::Nonsense)
    }

    pub(super) fn no_runtime(address: &Address) -> Self {
        Self::new(address, Cause::NoRuntime)
    }

    /// Whether another connection may lead to a server that can do it: the primary has changed,
    /// or the password has.
    pub(super) const fn calls_for_another_connection(&self) -> bool {
        matches!(self.cause, Cause::ReadOnly(_) | Cause::Refused(_))
    }

    /// Whether it helps to wait. A server that is full, still loading or busy with a script of
    /// somebody's has an outage; every other error that it answers with is about what we ask.
    fn kind(&self) -> StoreErrorKind {
        match &self.cause {
            Cause::Refused(_) | Cause::Forbidden(_) | Cause::Nonsense | Cause::NoRuntime => {
                StoreErrorKind::Refused
            }
            Cause::Failed(error) if !is_for_a_while(error) => StoreErrorKind::Refused,
            Cause::Unreachable(_)
            | Cause::Lost(_)
            | Cause::HungUp
            | Cause::Late(_)
            | Cause::NotYet(_)
            | Cause::ReadOnly(_)
            | Cause::Failed(_) => StoreErrorKind::Unavailable,
        }
    }

    /// Whether the server has said something, be it that it cannot.
    pub(super) const fn is_answer(&self) -> bool {
        !matches!(self.cause, Cause::Lost(_))
    }
}

fn does_not_know_us(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed
        || matches!(error.code(), Some("NOAUTH" | "WRONGPASS"))
}

/// Whether it is this error, also if a script met with it: older servers wrap that in an `ERR`.
fn is_code(error: &RedisError, kind: ServerErrorKind, code: &str) -> bool {
    error.kind() == ErrorKind::Server(kind)
        || error.detail().is_some_and(|detail| detail.contains(code))
}

/// Whether an error passes by itself. The server says it with the first word; older ones put it
/// later, if a script met with it.
fn is_for_a_while(error: &RedisError) -> bool {
    const PASSING: [&str; 11] = [
        "OOM",
        "LOADING",
        "BUSY",
        "MOVED",
        "ASK",
        "TRYAGAIN",
        "CLUSTERDOWN",
        "MASTERDOWN",
        "MISCONF",
        "NOREPLICAS",
        "NOSCRIPT",
    ];
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => {
            let detail = error.detail().unwrap_or_default();
            let words = detail.split(|c: char| !c.is_ascii_uppercase());
            let mut words = error.code().into_iter().chain(words);
            words.any(|word| PASSING.contains(&word))
        }
        ErrorKind::Parse
        | ErrorKind::UnexpectedReturnType
        | ErrorKind::InvalidClientConfig
        | ErrorKind::RESP3NotSupported => false,
        _ => true,
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.place;
        match &self.cause {
            Cause::Unreachable(error) => write!(f, "Redis at {place} cannot be reached: {error}"),
            Cause::Lost(error) => write!(f, "the connection to Redis at {place} was lost: {error}"),
            Cause::HungUp => write!(f, "Redis at {place} has closed the connection"),
            Cause::Late(deadline) => {
                write!(f, "Redis at {place} has not answered within {deadline:?}")
            }
            Cause::NotYet(deadline) => {
                write!(f, "no connection to Redis at {place} within {deadline:?}")
            }
            Cause::Refused(error) => write!(
                f,
                "Redis at {place} refuses us: {error}; check user and password in the URL"
            ),
            Cause::Forbidden(error) => write!(
                f,
                "Redis at {place} may not do this for us: {error}; check what the user is allowed, \
                 and on which keys"
            ),
            Cause::ReadOnly(error) => {
                write!(f, "Redis at {place} is a read-only replica: {error}")
            }
            Cause::Failed(error) => write!(f, "Redis at {place} failed: {error}"),
            Cause::Nonsense => write!(f, "Redis at {place} gave an answer of another shape"),
            Cause::NoRuntime => write!(
                f,
                "the runtime on which the store for Redis at {place} was built has ended"
            ),
        }
    }
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        let told = Self::of_kind(trouble.kind(), trouble.to_string());
        match trouble.cause {
            Cause::Unreachable(error)
            | Cause::Lost(error)
            | Cause::Refused(error)
            | Cause::Forbidden(error)
            | Cause::ReadOnly(error)
            | Cause::Failed(error) => told.with_source(error),
            Cause::HungUp
            | Cause::Late(_)
            | Cause::NotYet(_)
            | Cause::Nonsense
            | Cause::NoRuntime => told,
        }
    }
}
