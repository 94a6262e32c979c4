//! Operations for operators, and overrides.

use std::sync::Arc;

use super::RedisStore;
use crate::batch::Batch;
use crate::clock::Timestamp;
use crate::key::Subject;
use crate::store::{Override, OverrideStore, Overrides, StoreAdmin, StoreFuture};

impl StoreAdmin for RedisStore {
    fn reset(&self, batch: &Batch<'_>) -> StoreFuture<()> {
        self.reset_checks(batch)
    }

    fn reset_subject(&self, subject: &Subject<'_>) -> StoreFuture<()> {
        self.reset_all_of(subject)
    }

    fn clear(&self) -> StoreFuture<()> {
        self.clear_all()
    }

    fn len(&self) -> StoreFuture<usize> {
        self.count_all()
    }

    /// Redis removes expired counters itself, except under the caller's clock.
    fn sweep(&self, now: Timestamp) -> StoreFuture<usize> {
        if self.shared.use_client_clock {
            self.sweep_expired(self.shared.wall.at(now))
        } else {
            StoreFuture::ready(Ok(0))
        }
    }

    fn epoch(&self) -> u64 {
        let resets = self.shared.epoch.current();
        resets.wrapping_add(self.shared.overrides.version())
    }
}

impl OverrideStore for RedisStore {
    fn table(&self) -> &Overrides {
        &self.shared.overrides
    }

    fn loaded(&self) -> StoreFuture<()> {
        let shared = Arc::clone(&self.shared);
        self.spawn(async move { shared.wait_for_overrides(shared.deadline).await })
    }

    fn set(&self, new: Override) -> StoreFuture<()> {
        self.spawn_change(Arc::clone(&self.shared).set_override(new))
    }

    fn remove(&self, subject: &Subject<'_>, rule: &str) -> StoreFuture<bool> {
        let of = Override::of(*subject, rule);
        self.spawn_change(Arc::clone(&self.shared).remove_override(of))
    }
}
