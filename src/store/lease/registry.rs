//! All leases of a decorator: [`LeaseRegistry`].

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::pool::LeasePool;
use crate::clock::Timestamp;
use crate::store::Store;
use crate::store::by_fingerprint::{ByFingerprint, by_fingerprint};
use crate::store::subject_hash::{RequestFingerprint, SubjectHasher};
use crate::sync::{Mutex, lock};

#[derive(Debug)]
pub(super) struct Settings {
    pub(super) block_size: u64,
    pub(super) max_ttl: Duration,
}

pub(super) struct LeaseRegistry {
    pub(super) store: Arc<dyn Store>,
    pub(super) settings: Settings,
    pub(super) hasher: SubjectHasher,
    pub(super) pools: ByFingerprint<Arc<LeasePool>>,
    /// Pools in the order in which their blocks expire, so that blocks of pools without requests
    /// are refunded.
    expiries: Mutex<VecDeque<(Timestamp, Weak<LeasePool>)>>,
    pub(super) is_closed: AtomicBool,
}

/// Expired pools that one store call sweeps.
const SWEPT_PER_CALL: usize = 4;

impl LeaseRegistry {
    pub(super) fn new(store: Arc<dyn Store>, settings: Settings, capacity: usize) -> Self {
        Self {
            store,
            settings,
            hasher: SubjectHasher::random(),
            pools: by_fingerprint(capacity),
            expiries: Mutex::new(VecDeque::new()),
            is_closed: AtomicBool::new(false),
        }
    }

    pub(super) fn pool(self: &Arc<Self>, request: RequestFingerprint) -> Arc<LeasePool> {
        if let Some(pool) = self.pools.get(&request) {
            return pool;
        }
        // Two threads can create a pool for one request. The one that is replaced refunds its
        // blocks when its last request has completed.
        let pool = Arc::new(LeasePool::new(self));
        self.pools.insert(request, Arc::clone(&pool));
        pool
    }

    pub(super) fn all_pools(&self) -> Vec<Arc<LeasePool>> {
        self.pools.iter().map(|(_, pool)| pool).collect()
    }

    pub(super) fn schedule_expiry(&self, pool: &Arc<LeasePool>, now: Timestamp) {
        let expires_at = now.saturating_add(self.settings.max_ttl);
        lock(&self.expiries).push_back((expires_at, Arc::downgrade(pool)));
    }

    /// Sweeps a few pools whose blocks have expired.
    pub(super) fn sweep_some(&self, now: Timestamp) {
        for _ in 0..SWEPT_PER_CALL {
            let expired = lock(&self.expiries).pop_front_if(|(expires_at, _)| *expires_at <= now);
            let Some((_, pool)) = expired else {
                return;
            };
            if let Some(pool) = pool.upgrade()
                && pool.sweep(self, now)
            {
                self.schedule_expiry(&pool, now);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn scheduled_expiries(&self) -> usize {
        lock(&self.expiries).len()
    }
}
