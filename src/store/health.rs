//! Whether a store can be relied on at present.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::error::{StoreError, StoreErrorKind};

/// Whether a store answers, as far as is known without asking it.
///
/// ```
/// use tollgate::store::StoreHealth;
/// use tollgate::{MemoryStore, Store as _};
///
/// assert_eq!(MemoryStore::new().health(), StoreHealth::Healthy);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreHealth {
    /// Nothing is known to be wrong.
    #[default]
    Healthy,
    /// It does not answer, and what it should decide is decided without it.
    #[non_exhaustive]
    Degraded {
        /// Since when, on the wall clock.
        since: Timestamp,
        /// What is wrong, in words for people.
        why: Arc<str>,
        /// Whether it helps to wait.
        kind: StoreErrorKind,
    },
}

impl StoreHealth {
    /// Degraded since then, because of this.
    #[must_use]
    pub fn degraded(since: Timestamp, error: &StoreError) -> Self {
        Self::Degraded {
            since,
            why: Arc::clone(error.message()),
            kind: error.kind(),
        }
    }

    /// Whether nothing is known to be wrong.
    #[must_use]
    pub const fn is_healthy(&self) -> bool {
        matches!(self, Self::Healthy)
    }
}
