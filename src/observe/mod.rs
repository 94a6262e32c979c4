//! What is told to those who watch: events with the feature `tracing`, figures with `metrics`.

mod event;
mod metric;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::clock::Timestamp;
use crate::error::{ReloadError, StoreError};
use crate::head::Head;
use crate::quota::Quota;

/// What has been told already and is not told again.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    no_peer_address: AtomicBool,
    unknown_tiers: Mutex<HashSet<Box<str>>>,
}

impl Watch {
    /// Names beyond this many are not told of: they may be made up.
    const MOST_TIERS: usize = 64;

    /// Nobody has told where requests come from. Said once, with what to do about it.
    #[cold]
    pub(crate) fn no_peer_address(&self) {
        if self.no_peer_address.swap(true, Ordering::Relaxed) {
            return;
        }
        event::no_peer_address();
    }

    /// A caller has a tier that the policy does not know. Said once for each name.
    #[cold]
    pub(crate) fn unknown_tier(&self, name: &str) {
        let mut told = self
            .unknown_tiers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if told.len() < Self::MOST_TIERS && !told.contains(name) {
            told.insert(name.into());
            event::unknown_tier(name);
        }
    }
}

/// What an operator should know of a request that was turned away.
#[cfg_attr(
    not(feature = "tracing"),
    expect(dead_code, reason = "nobody is told of it then")
)]
pub(crate) struct Exceeded<'a> {
    pub(crate) head: Head<'a>,
    pub(crate) policy: &'a str,
    pub(crate) limit: u64,
    pub(crate) used: u64,
    pub(crate) window: u64,
    pub(crate) retry_after: Option<u64>,
    pub(crate) request_id: &'a str,
}

pub(crate) use event::{exceeded, exempt, overridden, store_failed, would_exceed};

/// Another policy is in force.
pub(crate) fn reloaded(version: u64) {
    event::reloaded(version);
    metric::reloaded(version);
}

/// Another policy was refused.
#[cold]
pub(crate) fn reload_failed(error: &ReloadError) {
    event::reload_failed(error);
    metric::reload_failed();
}
