//! Isolation of panics in callbacks.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls a closure from the user of the crate. Returns `None` if it panics; the panic hook has run
/// then.
///
/// Unwind safety: no state of this crate is borrowed mutably by such a closure, so a panic leaves
/// none of it half changed.
#[inline]
pub(crate) fn catch_panic<T>(closure: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(closure)).ok()
}
