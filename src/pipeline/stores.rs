//! Stores that decide requests, and their clocks.

use std::ops::Deref;

use super::context::RequestContext;
use super::{RequestPipeline, Snapshot};
use crate::clock::Timestamp;
use crate::store::{MemoryStore, Store};

impl RequestPipeline {
    /// Returns the store that counts while the shared one cannot answer.
    pub(super) fn local(&self) -> &MemoryStore {
        self.local.get_or_init(|| {
            let local = MemoryStore::new();
            local.use_clock(&self.clock.to_any());
            local
        })
    }

    /// Returns the store that decided a case.
    pub(super) fn store_of<R: Deref<Target = Snapshot>>(
        &self,
        case: &RequestContext<R>,
    ) -> &dyn Store {
        if case.is_local() {
            self.local()
        } else {
            &*self.store
        }
    }

    /// Returns the wall-clock time at `now`.
    #[inline]
    pub(super) fn wall(&self, now: Timestamp) -> Timestamp {
        self.clock.wall_at(now)
    }

    /// Returns the microseconds to add to the instants of the store that decided a case to get
    /// wall-clock time.
    pub(super) fn wall_offset_of<R: Deref<Target = Snapshot>>(
        &self,
        case: &RequestContext<R>,
    ) -> i64 {
        if case.is_local() {
            self.clock.wall_offset()
        } else {
            self.wall_offset()
        }
    }

    /// Returns the microseconds to add to the instants of the shared store to get wall-clock time.
    #[inline]
    pub(super) fn wall_offset(&self) -> i64 {
        self.time.wall_offset(&self.clock)
    }
}
