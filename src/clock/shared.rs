//! A clock that several read.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::{Clock, SystemClock, Timestamp};

/// Any clock. The machine's is known by its name, since it is read for every request.
#[derive(Clone)]
pub(crate) enum SharedClock {
    System(SystemClock),
    Other(Arc<dyn Clock>),
}

impl SharedClock {
    /// What is shared already stays shared.
    pub(crate) fn new<C: Clock>(clock: C) -> Self {
        let clock = Arc::new(clock);
        let any: &dyn Any = &clock;
        if let Some(system) = any.downcast_ref::<Arc<SystemClock>>() {
            Self::System(SystemClock::clone(system))
        } else if let Some(other) = any.downcast_ref::<Arc<Arc<dyn Clock>>>() {
            Self::Other(Arc::clone(&**other))
        } else {
            Self::Other(clock)
        }
    }

    /// For those who take any.
    pub(crate) fn to_any(&self) -> Arc<dyn Clock> {
        match self {
            Self::System(system) => Arc::new(system.clone()),
            Self::Other(other) => Arc::clone(other),
        }
    }

    /// [`Clock::now`].
    #[inline]
    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Self::System(system) => system.now(),
            // Somebody's own may go on from an instant that is past the last.
            Self::Other(other) => other.now().min(Timestamp::MAX),
        }
    }

    /// [`Clock::wall_offset`].
    #[inline]
    pub(crate) fn wall_offset(&self) -> i64 {
        match self {
            Self::System(system) => system.wall_offset(),
            Self::Other(other) => other.wall_offset(),
        }
    }

    /// Returns the wall-clock time at `now`, an instant of this clock. Read `now` first: reading it
    /// may measure the offset again.
    #[inline]
    pub(crate) fn wall_at(&self, now: Timestamp) -> Timestamp {
        now.offset_by(self.wall_offset())
    }

    /// Returns the time on the wall clock.
    #[inline]
    pub(crate) fn wall_now(&self) -> Timestamp {
        self.wall_at(self.now())
    }
}

impl Default for SharedClock {
    fn default() -> Self {
        Self::System(SystemClock::new())
    }
}

impl Deref for SharedClock {
    type Target = dyn Clock;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::System(system) => system,
            Self::Other(other) => &**other,
        }
    }
}

impl fmt::Debug for SharedClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
