//! Cost of a request.

use std::fmt;
use std::sync::Arc;

use crate::catch_panic::catch_panic;
use crate::head::RequestHead;

/// Cost of a request: a fixed number, or the result of a closure that gets the request's head.
#[derive(Clone)]
pub(crate) enum Cost {
    Fixed(u64),
    Of(CostFn),
}

/// Closure that returns the cost of a request.
type CostFn = Arc<dyn Fn(&RequestHead<'_>) -> u64 + Send + Sync>;

impl Cost {
    /// Returns the cost of a request. It is 1 if the closure panics.
    #[inline]
    pub(crate) fn of(&self, head: &RequestHead<'_>) -> u64 {
        match self {
            Self::Fixed(cost) => *cost,
            Self::Of(closure) => catch_panic(|| closure(head)).unwrap_or(1),
        }
    }
}

impl Cost {
    /// Returns the cost if it does not depend on the request.
    pub(super) const fn fixed(&self) -> Option<u64> {
        match self {
            Self::Fixed(cost) => Some(*cost),
            Self::Of(_) => None,
        }
    }
}

impl Default for Cost {
    fn default() -> Self {
        Self::Fixed(1)
    }
}

impl fmt::Debug for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(cost) => write!(f, "Cost({cost})"),
            Self::Of(_) => f.write_str("Cost(by request)"),
        }
    }
}
