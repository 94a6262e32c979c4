//! Redirects of a cluster node.

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Where a cluster node sends a request that it has not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// `MOVED`: the slot belongs to another node.
    Moved { host: String, port: u16 },
    /// `ASK`: the slot is being migrated, and this key has moved already.
    Ask { host: String, port: u16 },
    /// The keys are on both sides of a migration.
    TryAgain,
}

impl Redirect {
    /// Reads a redirect from an error reply.
    pub(super) fn from_error(error: &RedisError) -> Option<Self> {
        let ErrorKind::Server(kind) = error.kind() else {
            return None;
        };
        let target = || {
            let (address, _) = error.redirect_node()?;
            let (host, port) = address.rsplit_once(':')?;
            let host = host.trim_start_matches('[').trim_end_matches(']');
            Some((host.to_owned(), port.parse().ok()?))
        };
        match kind {
            ServerErrorKind::Moved => target().map(|(host, port)| Self::Moved { host, port }),
            ServerErrorKind::Ask => target().map(|(host, port)| Self::Ask { host, port }),
            ServerErrorKind::TryAgain => Some(Self::TryAgain),
            _ => None,
        }
    }
}
