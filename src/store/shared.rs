//! A store that several hold.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::{MemoryStore, Overrides, Store, StoreFuture};
use crate::batch::Check;
use crate::clock::Timestamp;
use crate::decision::Usage;

/// Any store. The one that most have is known by its name: what every request asks of it is short,
/// and shorter still for those who need not find out whom they are asking.
#[derive(Clone)]
pub(crate) enum SharedStore {
    Memory(Arc<MemoryStore>),
    Other(Arc<dyn Store>),
}

impl SharedStore {
    /// What is shared already stays shared.
    pub(crate) fn new<S: Store>(store: S) -> Self {
        let store = Arc::new(store);
        let any: &dyn Any = &store;
        if let Some(memory) = any.downcast_ref::<Arc<MemoryStore>>() {
            Self::Memory(Arc::clone(memory))
        } else if let Some(memory) = any.downcast_ref::<Arc<Arc<MemoryStore>>>() {
            Self::Memory(Arc::clone(&**memory))
        } else if let Some(other) = any.downcast_ref::<Arc<Arc<dyn Store>>>() {
            Self::Other(Arc::clone(&**other))
        } else {
            Self::Other(store)
        }
    }

    /// [`Store::overrides`].
    #[inline]
    pub(crate) fn overrides(&self) -> Option<&Overrides> {
        match self {
            Self::Memory(memory) => memory.overrides(),
            Self::Other(other) => other.overrides(),
        }
    }

    /// [`Store::decide_one`]: what is known at once, as it nearly always is, or the answer of a
    /// store that took longer.
    #[inline(always)]
    pub(crate) fn decide_at_once(
        &self,
        check: &Check<'_>,
        now: Timestamp,
    ) -> Result<(Usage, Timestamp), StoreFuture<(Usage, Timestamp)>> {
        match self {
            Self::Memory(memory) => memory.decide_at_once(check, now),
            Self::Other(other) => {
                let answer = other.decide_one(check, now);
                match answer.as_ready() {
                    Some(Ok(known)) => Ok(*known),
                    _ => Err(answer),
                }
            }
        }
    }
}

impl Default for SharedStore {
    fn default() -> Self {
        Self::Memory(Arc::new(MemoryStore::new()))
    }
}

impl Deref for SharedStore {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Memory(memory) => &**memory,
            Self::Other(other) => &**other,
        }
    }
}

impl fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_stays_shared_and_is_known() {
        assert!(matches!(
            SharedStore::new(MemoryStore::new()),
            SharedStore::Memory(_)
        ));
        let memory = Arc::new(MemoryStore::new());
        let SharedStore::Memory(same) = SharedStore::new(Arc::clone(&memory)) else {
            panic!("a memory store is known");
        };
        assert!(Arc::ptr_eq(&same, &memory));
        let other: Arc<dyn Store> = memory;
        let SharedStore::Other(same) = SharedStore::new(Arc::clone(&other)) else {
            panic!("whatever is in there");
        };
        assert!(Arc::ptr_eq(&same, &other));
    }
}
