//! Failures of a store.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use super::named;

/// Failure of a store. The memory store never returns it.
///
/// A failure is not a denial: it carries no information about the caller.
///
/// ```
/// use tollgate::{StoreError, StoreErrorKind};
///
/// let down = StoreError::new("no route to the server");
/// assert_eq!(down.kind(), StoreErrorKind::Unavailable);
///
/// let wrong = StoreError::permanent("wrong password; check it in the URL");
/// assert_eq!(wrong.kind(), StoreErrorKind::Permanent);
/// ```
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    /// Shared, because one failure is returned to many requests.
    message: Arc<str>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// Kind of a store failure: temporary or permanent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Outage: the store cannot be reached, or does not reply in time. The failure mode of each rule
    /// applies.
    #[default]
    Unavailable,
    /// Permanent error: wrong credentials, a command without permission, a rejected database or
    /// script, a key of another type, a server that is not Redis. It lasts until the configuration is
    /// corrected. Rules that pass requests uncounted during an outage count them in the memory of each
    /// process instead.
    Permanent,
    /// The store has no memory, disk or queue left, for example a Redis server that reached its
    /// `maxmemory`. Callers can cause it by sending requests under many identities. Rules that pass
    /// requests in an outage therefore count them in the memory of each process, as for
    /// [`Permanent`](Self::Permanent).
    Exhausted,
}

named!(StoreErrorKind {
    Unavailable => "unavailable",
    Permanent => "permanent",
    Exhausted => "exhausted",
});

impl StoreError {
    /// Creates an outage with a message.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self::of_kind(StoreErrorKind::Unavailable, message)
    }

    /// Creates a permanent error. The message should contain what to correct.
    pub fn permanent(message: impl Into<Cow<'static, str>>) -> Self {
        Self::of_kind(StoreErrorKind::Permanent, message)
    }

    /// Creates a failure of this kind.
    pub fn of_kind(kind: StoreErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            message: message.into().into(),
            source: None,
        }
    }

    /// Sets the underlying error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the kind of the failure.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Copies the failure without its source, which cannot be cloned.
    pub(crate) fn again(&self) -> Self {
        Self {
            kind: self.kind,
            message: Arc::clone(&self.message),
            source: None,
        }
    }

    /// Returns the message.
    pub(crate) fn message(&self) -> &Arc<str> {
        &self.message
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}
