//! States that do not fit into a cell: sliding logs and sliding buckets.

use slab::Slab;

use crate::algorithm::State;
use crate::quota::Quota;

/// Slab of states. Empty until the first one is inserted, because most tables never have any.
#[derive(Default)]
pub(super) struct Heap(Option<Box<Slab<State>>>);

impl Heap {
    /// Returns the state at `index`; inserts a fresh one if there is none.
    pub(super) fn get_or_insert(
        &mut self,
        index: Option<usize>,
        quota: &Quota,
    ) -> (usize, &mut State) {
        let states = self.0.get_or_insert_default();
        let index = match index {
            Some(index) if states.contains(index) => index,
            _ => states.insert(State::fresh(quota)),
        };
        (index, &mut states[index])
    }

    pub(super) fn get(&self, index: usize) -> Option<&State> {
        self.0.as_ref()?.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut State> {
        self.0.as_mut()?.get_mut(index)
    }

    pub(super) fn remove(&mut self, index: usize) {
        if let Some(states) = &mut self.0 {
            states.try_remove(index);
        }
    }

    pub(super) fn shrink_to_fit(&mut self) {
        if let Some(states) = &mut self.0 {
            states.shrink_to_fit();
        }
    }
}
