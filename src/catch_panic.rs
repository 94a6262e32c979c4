//! Closures of users may panic; requests go on.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a closure of the user's says, or nothing if it panics. The panic hook has told of it.
///
/// What the closure was about to change may be half changed. That is the user's own; nothing
/// of this crate is lent to it mutably.
#[inline]
pub(crate) fn catch_panic<T>(closure: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(closure)).ok()
}
