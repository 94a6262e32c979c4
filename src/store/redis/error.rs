//! Failures of calls to Redis.

mod classify;
mod display;

use std::sync::Arc;
use std::time::Duration;

use redis::RedisError;

use self::classify::is_temporary;
use super::connect::ConnectError;
use super::redirect::Redirect;
use crate::error::{StoreError, StoreErrorKind};

pub(super) use self::classify::{is_authentication_error, is_ignored_while_connecting};

/// A failed call, with the address of the server.
#[derive(Clone, Debug)]
pub(super) struct RedisStoreError {
    place: Arc<str>,
    cause: ErrorCause,
}

#[derive(Clone, Debug)]
pub(super) enum ErrorCause {
    /// No connection could be opened.
    Unreachable(RedisError),
    /// The connection ended before the reply came. The outcome is unknown.
    Lost(RedisError),
    /// The server closed the connection, for example after its idle timeout.
    ClosedByServer,
    /// No reply came in time. The outcome is unknown.
    Late(Duration),
    /// No connection was open in time. Nothing was sent.
    NotConnected(Duration),
    /// Earlier calls kept the connection busy for too long. Nothing was sent.
    Unsent(Duration),
    /// The queue is full. Nothing was sent.
    QueueFull,
    /// The server uses TLS, the URL does not.
    TlsExpected,
    /// The URL uses TLS, the server does not.
    PlainExpected,
    /// The TLS handshake failed, for example because the certificate is not trusted.
    Handshake(RedisError),
    /// The server rejects user or password, or requires them.
    Refused(RedisError),
    /// The server cannot be used with this configuration.
    Unusable(UnusableServer),
    /// The memory of the server is full.
    OutOfMemory(RedisError),
    /// The server rejects writes because it cannot save its data, for example on a full disk.
    NotPersisted(RedisError),
    /// The user lacks a permission.
    Forbidden(RedisError),
    /// The server is a replica, perhaps since a failover.
    ReadOnly(RedisError),
    /// Another server is the primary now.
    Demoted,
    /// No sentinel has a primary of this name.
    UnknownPrimary(Box<str>),
    /// The key is on another server. Nothing has run.
    Redirected(Redirect, RedisError),
    /// No node of the cluster has this slot, or they disagree about it.
    NoOwner(u16),
    /// The server replied with an error.
    Failed(RedisError),
    /// The reply has a form that no script of this crate returns.
    UnexpectedReply,
    /// There are more overrides than this.
    TooManyOverrides(usize),
    /// A later version of this crate has written the overrides.
    UnreadableOverrides,
    /// The first load of the overrides is not done. Nothing was sent.
    OverridesNotLoaded,
    /// The runtime of the store has ended.
    NoRuntime,
}

/// Why a server cannot be used until its configuration or the URL changes.
#[derive(Clone, Debug)]
pub(super) enum UnusableServer {
    /// It rejects clients of other hosts, because it has no password.
    ProtectedMode(RedisError),
    /// It rejects this database, or the user may not select it.
    RejectedDatabase(u16, RedisError),
    /// It is in the list of sentinels, and is none.
    NotSentinel(RedisError),
    /// It is a node of a cluster, and the URL is not that of a cluster.
    ClusterNode(RedisError),
    /// Its reply is not in the protocol of Redis.
    NotRedis,
}

impl RedisStoreError {
    pub(super) fn new(place: &Arc<str>, cause: ErrorCause) -> Self {
        Self {
            place: Arc::clone(place),
            cause,
        }
    }

    /// A connection could not be opened.
    pub(super) fn connecting(place: &Arc<str>, error: ConnectError) -> Self {
        let cause = match error {
            ConnectError::TlsExpected => ErrorCause::TlsExpected,
            ConnectError::PlainExpected => ErrorCause::PlainExpected,
            ConnectError::Handshake(error) => ErrorCause::Handshake(error),
            ConnectError::NotRedis => ErrorCause::Unusable(UnusableServer::NotRedis),
            ConnectError::Rejected(command, error) => ErrorCause::of_connecting(command, error),
            ConnectError::Failed(error) => ErrorCause::Unreachable(error),
        };
        Self::new(place, cause)
    }

    /// A call failed.
    pub(super) fn calling(place: &Arc<str>, error: RedisError) -> Self {
        Self::new(place, ErrorCause::of_call(error))
    }

    pub(super) fn unknown_primary(place: &Arc<str>, name: &str) -> Self {
        Self::new(place, ErrorCause::UnknownPrimary(name.into()))
    }

    /// Returns whether another connection may help: the primary or the password has changed.
    pub(super) const fn needs_other_connection(&self) -> bool {
        matches!(self.cause, ErrorCause::ReadOnly(_) | ErrorCause::Refused(_))
    }

    /// A server that is loading or busy with a script is unavailable, a full one is exhausted. Every
    /// other error reply is permanent: it concerns the request, the user or the configuration.
    pub(super) fn kind(&self) -> StoreErrorKind {
        match &self.cause {
            ErrorCause::TlsExpected
            | ErrorCause::PlainExpected
            | ErrorCause::Handshake(_)
            | ErrorCause::Refused(_)
            | ErrorCause::Unusable(_)
            | ErrorCause::Forbidden(_)
            | ErrorCause::UnknownPrimary(_)
            | ErrorCause::UnexpectedReply
            | ErrorCause::TooManyOverrides(_)
            | ErrorCause::UnreadableOverrides
            | ErrorCause::NoRuntime => StoreErrorKind::Permanent,
            ErrorCause::Failed(error) if !is_temporary(error) => StoreErrorKind::Permanent,
            ErrorCause::QueueFull | ErrorCause::OutOfMemory(_) | ErrorCause::NotPersisted(_) => {
                StoreErrorKind::Exhausted
            }
            ErrorCause::Unreachable(_)
            | ErrorCause::Lost(_)
            | ErrorCause::ClosedByServer
            | ErrorCause::Late(_)
            | ErrorCause::NotConnected(_)
            | ErrorCause::Unsent(_)
            | ErrorCause::ReadOnly(_)
            | ErrorCause::Demoted
            | ErrorCause::Redirected(..)
            | ErrorCause::NoOwner(_)
            | ErrorCause::OverridesNotLoaded
            | ErrorCause::Failed(_) => StoreErrorKind::Unavailable,
        }
    }

    /// Returns the error of a store with one server: such a store cannot follow a redirect.
    pub(super) fn without_cluster(self) -> Self {
        let cause = match self.cause {
            ErrorCause::Redirected(_, error) => {
                ErrorCause::Unusable(UnusableServer::ClusterNode(error))
            }
            cause => cause,
        };
        Self { cause, ..self }
    }

    /// Returns where a cluster node redirects the request. It has run nothing.
    pub(super) const fn redirect(&self) -> Option<&Redirect> {
        match &self.cause {
            ErrorCause::Redirected(redirect, _) => Some(redirect),
            _ => None,
        }
    }

    /// Returns whether another server may have the slots of this one by now: the server is unavailable,
    /// and not only busy.
    pub(super) fn doubts_slot_map(&self) -> bool {
        match &self.cause {
            ErrorCause::Failed(error) => {
                matches!(error.code(), Some("CLUSTERDOWN" | "MASTERDOWN" | "LOADING"))
            }
            // Concerns the copy of this process.
            ErrorCause::OverridesNotLoaded => false,
            _ => self.kind() == StoreErrorKind::Unavailable,
        }
    }

    /// Returns the error of a request that is not sent because of this failure. Its outcome is known:
    /// nothing was charged.
    pub(super) fn for_unsent(&self) -> Self {
        let cause = match &self.cause {
            ErrorCause::Late(within) => ErrorCause::Unsent(*within),
            ErrorCause::Lost(error) => ErrorCause::Unreachable(error.clone()),
            other => other.clone(),
        };
        Self::new(&self.place, cause)
    }

    /// Returns the failure to report if servers that can replace each other fail: the first one that
    /// does not pass by itself, or the last one.
    pub(super) fn worse_of(before: Option<Self>, after: Option<Self>) -> Option<Self> {
        let is_outage = |error: &Self| error.kind() == StoreErrorKind::Unavailable;
        match (before, after) {
            (Some(before), Some(after)) if is_outage(&before) => Some(after),
            (before, after) => before.or(after),
        }
    }

    /// Joins the failures of several servers for a health report. Its kind is that of the first one
    /// that does not pass by itself.
    pub(super) fn into_one(errors: impl Iterator<Item = Self>) -> StoreError {
        let (mut kind, mut messages) = (StoreErrorKind::Unavailable, Vec::new());
        for error in errors {
            if kind == StoreErrorKind::Unavailable {
                kind = error.kind();
            }
            messages.push(error.to_string());
        }
        StoreError::of_kind(kind, messages.join("; "))
    }
}

impl From<RedisStoreError> for StoreError {
    fn from(error: RedisStoreError) -> Self {
        let store_error = Self::of_kind(error.kind(), error.to_string());
        match error.cause {
            ErrorCause::Unreachable(error)
            | ErrorCause::Lost(error)
            | ErrorCause::Handshake(error)
            | ErrorCause::OutOfMemory(error)
            | ErrorCause::NotPersisted(error)
            | ErrorCause::Refused(error)
            | ErrorCause::Unusable(
                UnusableServer::ProtectedMode(error)
                | UnusableServer::RejectedDatabase(_, error)
                | UnusableServer::NotSentinel(error)
                | UnusableServer::ClusterNode(error),
            )
            | ErrorCause::Forbidden(error)
            | ErrorCause::ReadOnly(error)
            | ErrorCause::Redirected(_, error)
            | ErrorCause::Failed(error) => store_error.with_source(error),
            _ => store_error,
        }
    }
}
