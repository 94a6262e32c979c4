//! What can go wrong between us and Redis, in words for people.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};

use super::connect::NOT_TRUSTED;
use crate::error::{StoreError, StoreErrorKind};

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(super) struct RedisStoreError {
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
    /// Those before it have kept the line busy for so long. Nothing was sent.
    Unsent(Duration),
    /// More wait than there is room for. Nothing was sent.
    Crowded,
    /// It cannot prove who it is.
    NotTrusted(RedisError),
    /// It does not know us.
    Refused(RedisError),
    /// It knows us, and may not do for us what we ask.
    Forbidden(RedisError),
    /// It is a replica, perhaps since a moment ago.
    ReadOnly(RedisError),
    /// Another server is the primary now.
    Demoted,
    /// No sentinel knows a primary of this name.
    UnknownPrimary(Box<str>),
    /// What was asked for is elsewhere. Nothing has run.
    Elsewhere(Redirect, RedisError),
    /// No server of the cluster has this slot, or each says that another has it.
    Scattered(u16),
    /// It answered with an error.
    Failed(RedisError),
    /// It answered something else than it was asked.
    UnexpectedReply,
    /// The runtime that the store was made on is gone.
    NoRuntime,
}

/// Where a server says that a key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// There, from now on.
    Moved { host: String, port: u16 },
    /// There, this time.
    Ask { host: String, port: u16 },
    /// Partly here and partly elsewhere, for a moment.
    TryAgain,
}

impl Redirect {
    fn of(error: &RedisError) -> Option<Self> {
        let ErrorKind::Server(kind) = error.kind() else {
            return None;
        };
        let told = || {
            let (address, _) = error.redirect_node()?;
            let (host, port) = address.rsplit_once(':')?;
            let host = host.trim_start_matches('[').trim_end_matches(']');
            Some((host.to_owned(), port.parse().ok()?))
        };
        match kind {
            ServerErrorKind::Moved => told().map(|(host, port)| Self::Moved { host, port }),
            ServerErrorKind::Ask => told().map(|(host, port)| Self::Ask { host, port }),
            ServerErrorKind::TryAgain => Some(Self::TryAgain),
            _ => None,
        }
    }
}

impl RedisStoreError {
    fn new(place: &Arc<str>, cause: Cause) -> Self {
        Self {
            place: Arc::clone(place),
            cause,
        }
    }

    /// A connection could not be made.
    pub(super) fn connecting(place: &Arc<str>, error: RedisError) -> Self {
        let cause = if does_not_know_us(&error) {
            Cause::Refused(error)
        } else if error.kind() == NOT_TRUSTED {
            Cause::NotTrusted(error)
        } else {
            Cause::Unreachable(error)
        };
        Self::new(place, cause)
    }

    /// A call failed.
    pub(super) fn calling(place: &Arc<str>, error: RedisError) -> Self {
        let cause = if does_not_know_us(&error) {
            Cause::Refused(error)
        } else if is_code(&error, ServerErrorKind::NoPerm, "NOPERM") {
            Cause::Forbidden(error)
        } else if is_code(&error, ServerErrorKind::ReadOnly, "READONLY") {
            Cause::ReadOnly(error)
        } else if let Some(way) = Redirect::of(&error) {
            Cause::Elsewhere(way, error)
        } else if error.is_io_error() {
            Cause::Lost(error)
        } else {
            Cause::Failed(error)
        };
        Self::new(place, cause)
    }

    pub(super) fn late(place: &Arc<str>, deadline: Duration) -> Self {
        Self::new(place, Cause::Late(deadline))
    }

    pub(super) fn not_yet(place: &Arc<str>, deadline: Duration) -> Self {
        Self::new(place, Cause::NotYet(deadline))
    }

    pub(super) fn unsent(place: &Arc<str>, deadline: Duration) -> Self {
        Self::new(place, Cause::Unsent(deadline))
    }

    pub(super) fn crowded(place: &Arc<str>) -> Self {
        Self::new(place, Cause::Crowded)
    }

    pub(super) fn hung_up(place: &Arc<str>) -> Self {
        Self::new(place, Cause::HungUp)
    }

    pub(super) fn demoted(place: &Arc<str>) -> Self {
        Self::new(place, Cause::Demoted)
    }

    pub(super) fn unknown_primary(place: &Arc<str>, name: &str) -> Self {
        Self::new(place, Cause::UnknownPrimary(name.into()))
    }

    pub(super) fn scattered(place: &Arc<str>, slot: u16) -> Self {
        Self::new(place, Cause::Scattered(slot))
    }

    pub(super) fn unexpected_reply(place: &Arc<str>) -> Self {
        Self::new(place, Cause::UnexpectedReply)
    }

    pub(super) fn no_runtime(place: &Arc<str>) -> Self {
        Self::new(place, Cause::NoRuntime)
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
            Cause::NotTrusted(_)
            | Cause::Refused(_)
            | Cause::Forbidden(_)
            | Cause::UnknownPrimary(_)
            | Cause::UnexpectedReply
            | Cause::NoRuntime => StoreErrorKind::Refused,
            Cause::Failed(error) if !is_for_a_while(error) => StoreErrorKind::Refused,
            Cause::Unreachable(_)
            | Cause::Lost(_)
            | Cause::HungUp
            | Cause::Late(_)
            | Cause::NotYet(_)
            | Cause::Unsent(_)
            | Cause::Crowded
            | Cause::ReadOnly(_)
            | Cause::Demoted
            | Cause::Elsewhere(..)
            | Cause::Scattered(_)
            | Cause::Failed(_) => StoreErrorKind::Unavailable,
        }
    }

    /// Where the server says that it is instead.
    pub(super) const fn way(&self) -> Option<&Redirect> {
        match &self.cause {
            Cause::Elsewhere(way, _) => Some(way),
            _ => None,
        }
    }

    /// Whether somebody else may have the slots of this server by now.
    pub(super) fn doubts_the_map(&self) -> bool {
        match &self.cause {
            Cause::Unreachable(_)
            | Cause::Lost(_)
            | Cause::HungUp
            | Cause::Late(_)
            | Cause::NotYet(_)
            | Cause::Unsent(_)
            | Cause::ReadOnly(_)
            | Cause::Demoted
            | Cause::Elsewhere(..)
            | Cause::Scattered(_) => true,
            Cause::Failed(error) => {
                matches!(error.code(), Some("CLUSTERDOWN" | "MASTERDOWN" | "LOADING"))
            }
            Cause::Crowded
            | Cause::NotTrusted(_)
            | Cause::Refused(_)
            | Cause::Forbidden(_)
            | Cause::UnknownPrimary(_)
            | Cause::UnexpectedReply
            | Cause::NoRuntime => false,
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

impl fmt::Display for RedisStoreError {
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
            Cause::Unsent(deadline) => write!(
                f,
                "Redis at {place} has not answered those before within {deadline:?}; this one was \
                 not sent"
            ),
            Cause::Crowded => write!(f, "too many wait for Redis at {place} already"),
            Cause::NotTrusted(error) => write!(
                f,
                "Redis at {place} cannot prove who it is: {error}; check its certificate, and whether \
                 `root_certificates` has the one that it was signed with"
            ),
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
            Cause::Demoted => write!(f, "Redis at {place} is not the primary any more"),
            Cause::UnknownPrimary(name) => write!(
                f,
                "no sentinel knows a primary `{name}`; check the name after the hosts in the URL"
            ),
            Cause::Elsewhere(_, error) => write!(
                f,
                "Redis at {place} is one of a cluster: {error}; the URL of a cluster begins with \
                 redis+cluster://"
            ),
            Cause::Scattered(slot) => write!(
                f,
                "no server of the Redis cluster at {place} has slot {slot}; it may be about to move"
            ),
            Cause::Failed(error) => write!(f, "Redis at {place} failed: {error}"),
            Cause::UnexpectedReply => write!(f, "Redis at {place} gave an answer of another shape"),
            Cause::NoRuntime => write!(
                f,
                "the runtime on which the store for Redis at {place} was built has ended"
            ),
        }
    }
}

impl From<RedisStoreError> for StoreError {
    fn from(trouble: RedisStoreError) -> Self {
        let told = Self::of_kind(trouble.kind(), trouble.to_string());
        match trouble.cause {
            Cause::Unreachable(error)
            | Cause::Lost(error)
            | Cause::NotTrusted(error)
            | Cause::Refused(error)
            | Cause::Forbidden(error)
            | Cause::ReadOnly(error)
            | Cause::Elsewhere(_, error)
            | Cause::Failed(error) => told.with_source(error),
            Cause::HungUp
            | Cause::Late(_)
            | Cause::NotYet(_)
            | Cause::Unsent(_)
            | Cause::Crowded
            | Cause::Demoted
            | Cause::UnknownPrimary(_)
            | Cause::Scattered(_)
            | Cause::UnexpectedReply
            | Cause::NoRuntime => told,
        }
    }
}
