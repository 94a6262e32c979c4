//! Operations of a store that operators use: [`StoreAdmin`] and [`OverrideStore`].

use super::{MemoryStats, Override, Overrides, StoreFuture};
use crate::batch::Batch;
use crate::clock::Timestamp;
use crate::key::Subject;

/// Operations on the counters of a store that do not belong to a request.
#[expect(
    clippy::len_without_is_empty,
    reason = "`len` is a statistic; no caller needs to find out whether a store is empty"
)]
pub trait StoreAdmin: Send + Sync {
    /// Removes the counters of these checks.
    fn reset(&self, batch: &Batch<'_>) -> StoreFuture<()>;

    /// Removes every counter of a subject.
    fn reset_subject(&self, subject: &Subject<'_>) -> StoreFuture<()>;

    /// Removes every counter. Overrides stay.
    fn clear(&self) -> StoreFuture<()>;

    /// Returns the number of counters, including expired ones that have not been swept.
    fn len(&self) -> StoreFuture<usize>;

    /// Removes every expired counter and returns how many there were. Returns 0 in a store that
    /// expires its counters by itself.
    fn sweep(&self, now: Timestamp) -> StoreFuture<usize> {
        let _ = now;
        StoreFuture::ready(Ok(0))
    }

    /// Returns a number that changes before and after each [`reset`](Self::reset),
    /// [`reset_subject`](Self::reset_subject) and [`clear`](Self::clear), and each change of an
    /// override that this process makes or learns of.
    ///
    /// Decorators store it beside what they derive from the store, and discard that under another
    /// number. A change must be visible here before the operation completes, also if its future is
    /// dropped.
    fn epoch(&self) -> u64;

    /// Returns what the store keeps in the memory of this process; `None` if that is nothing. Read
    /// about once a second.
    fn memory_stats(&self) -> Option<MemoryStats> {
        None
    }
}

/// Limits that are set at run time, shared by all processes that use the store.
pub trait OverrideStore: Send + Sync {
    /// Returns this process's copy of the overrides. A change by another process is in it within a
    /// second.
    fn table(&self) -> &Overrides;

    /// Waits until [`table`](Self::table) has been loaded for the first time. Called while
    /// [`Overrides::is_loading`] returns `true`. An error leads to the failure mode of the rules of a
    /// request. A store that keeps no copy needs no implementation.
    fn loaded(&self) -> StoreFuture<()> {
        StoreFuture::ready(Ok(()))
    }

    /// Sets a limit for one subject under one rule.
    fn set(&self, new: Override) -> StoreFuture<()>;

    /// Removes the limits of a subject under a rule. Returns whether there were any.
    fn remove(&self, subject: &Subject<'_>, rule: &str) -> StoreFuture<bool>;
}
