//! What is done about blocks of counters that the store forgets.

use std::sync::Arc;

use super::Shared;
use crate::key::{OwnedSubject, Subject};
use crate::store::StoreFuture;

/// Counters that are forgotten. What was charged before must not be spent after, and what is
/// charged meanwhile may be either.
pub(super) struct Forgotten {
    shared: Arc<Shared>,
    /// Whose; `None` for everybody's.
    subjects: Option<Box<[OwnedSubject]>>,
}

impl Forgotten {
    pub(super) fn new(shared: &Arc<Shared>, subjects: Option<Vec<Subject<'_>>>) -> Self {
        let forgotten = Self {
            shared: Arc::clone(shared),
            subjects: subjects.map(|all| all.iter().map(OwnedSubject::from).collect()),
        };
        forgotten.forfeit();
        forgotten
    }

    fn forfeit(&self) {
        for desk in self.shared.desks() {
            match &self.subjects {
                Some(subjects) => subjects
                    .iter()
                    .for_each(|subject| desk.forfeit(Some(&subject.as_subject()))),
                None => desk.forfeit(None),
            }
        }
    }

    /// Once more, when it is done.
    pub(super) fn after(self, answer: StoreFuture<()>) -> StoreFuture<()> {
        answer.map(move |done| {
            drop(self);
            done
        })
    }
}

/// Also if nobody waits for it.
impl Drop for Forgotten {
    fn drop(&mut self) {
        self.forfeit();
    }
}
