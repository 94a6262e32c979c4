//! Health of a store, as far as it is known without a call: [`StoreHealth`].

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::error::{StoreError, StoreErrorKind};

/// Health of a store, as far as it is known without a call.
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
    /// No failure is known.
    #[default]
    Healthy,
    /// The store fails. The failure modes of the rules apply to the requests that need it.
    #[non_exhaustive]
    Degraded {
        /// Wall-clock time of the first failure.
        since: Timestamp,
        /// Last error. For Redis, it names each server that fails.
        why: Arc<str>,
        /// Kind of the error.
        kind: StoreErrorKind,
    },
}

impl StoreHealth {
    /// Returns a degraded state since this time, because of this error.
    #[must_use]
    pub fn degraded(since: Timestamp, error: &StoreError) -> Self {
        Self::Degraded {
            since,
            why: Arc::clone(error.message()),
            kind: error.kind(),
        }
    }

    /// Returns whether no failure is known.
    #[must_use]
    pub const fn is_healthy(&self) -> bool {
        matches!(self, Self::Healthy)
    }
}
