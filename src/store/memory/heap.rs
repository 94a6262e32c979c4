//! States that do not fit into a cell.

use slab::Slab;

use crate::algorithm::State;

/// One word, and nothing on the heap until the first of them comes: most tables never have any.
#[derive(Default)]
pub(super) struct Heap(Option<Box<Slab<State>>>);

impl Heap {
    pub(super) fn insert(&mut self, state: State) -> usize {
        self.0.get_or_insert_default().insert(state)
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
