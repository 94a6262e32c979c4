//! Where the rules are that are in force.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::{ArcSwap, Guard};

use super::Rules;

/// The rules that are in force. Most are never replaced, and then there is nothing to do but to
/// look at them: to take what may be replaced meanwhile is to say so where whoever replaces it
/// sees it, and that makes the processor wait twice.
///
/// For that, the first ones stay in memory after they were replaced.
pub(super) struct Shelf {
    first: Arc<Rules>,
    is_replaced: AtomicBool,
    latest: ArcSwap<Rules>,
}

impl Shelf {
    pub(super) fn new(rules: Rules) -> Self {
        let first = Arc::new(rules);
        Self {
            latest: ArcSwap::new(Arc::clone(&first)),
            is_replaced: AtomicBool::new(false),
            first,
        }
    }

    /// The rules that are in force, if there were no others before.
    #[inline]
    pub(super) fn first(&self) -> Option<&Arc<Rules>> {
        // Acquire: whoever has heard of others finds them.
        let is_replaced = self.is_replaced.load(Ordering::Acquire);
        (!is_replaced).then_some(&self.first)
    }

    /// The rules that are in force, whether or not there were others before.
    pub(super) fn load(&self) -> Guard<Arc<Rules>> {
        self.latest.load()
    }

    /// The same, to be kept.
    #[cfg(feature = "admin")]
    pub(super) fn load_full(&self) -> Arc<Rules> {
        self.latest.load_full()
    }

    /// Others, from now on.
    pub(super) fn store(&self, rules: Arc<Rules>) {
        self.latest.store(rules);
        self.is_replaced.store(true, Ordering::Release);
    }
}
