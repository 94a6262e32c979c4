//! The denials that are remembered, and what makes them untrue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::changes::{Changes, Slot};
use super::denial::{Denial, Steady, span};
use crate::batch::{Batch, Check, MAX_CHECKS};
use crate::clock::Timestamp;
use crate::key::Subject;
use crate::store::by_print::{ByPrint, by_print};
use crate::store::subject_hash::{Fingerprint, RequestPrint, SubjectHasher};
use crate::usage::Usages;

pub(super) struct Memory {
    secret: SubjectHasher,
    denials: ByPrint<Arc<Denial>>,
    changes: Changes,
    longest: Duration,
    answered: AtomicU64,
}

/// A request that the store is asked about.
pub(super) struct Asked {
    print: RequestPrint,
    at: Timestamp,
    /// Of each check, what had happened to its subject, and when its figures stay.
    subjects: [(Slot, u64); MAX_CHECKS],
    steady: [Steady; MAX_CHECKS],
    /// Epoch of the store before it was asked.
    epoch: u64,
}

impl Memory {
    pub(super) fn new(capacity: usize, longest: Duration) -> Self {
        Self {
            secret: SubjectHasher::random(),
            denials: by_print(capacity),
            changes: Changes::none(),
            longest,
            answered: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(super) fn fingerprints(&self, batch: &Batch<'_>) -> [Fingerprint; MAX_CHECKS] {
        self.secret.fingerprints(batch.checks())
    }

    #[inline]
    pub(super) fn request(&self, checks: &[Check<'_>], prints: &[Fingerprint]) -> RequestPrint {
        self.secret.request(checks, prints)
    }

    /// What the store has said to this request, if it would say it again.
    #[inline]
    pub(super) fn recall(
        &self,
        print: RequestPrint,
        epoch: u64,
        now: Timestamp,
    ) -> Option<Arc<Denial>> {
        let denial = self.denials.get(&print)?;
        let is_same = |(slot, count): &(Slot, u64)| self.changes.count(*slot) == *count;
        if denial.epoch != epoch || !denial.holds(now) || !denial.counts_on.iter().all(is_same) {
            return None;
        }
        self.answered.fetch_add(1, Ordering::Relaxed);
        Some(denial)
    }

    /// Notes how things stand before a request is put to the store.
    pub(super) fn asked(
        &self,
        checks: &[Check<'_>],
        prints: &[Fingerprint],
        print: RequestPrint,
        (epoch, at): (u64, Timestamp),
    ) -> Asked {
        let mut asked = Asked {
            print,
            at,
            subjects: [(Slot::default(), 0); MAX_CHECKS],
            steady: [Steady::Always; MAX_CHECKS],
            epoch,
        };
        for (index, (check, print)) in checks.iter().zip(prints).enumerate() {
            let slot = Slot::of(*print);
            asked.subjects[index] = (slot, self.changes.count(slot));
            asked.steady[index] = Steady::of(check);
        }
        asked
    }

    /// What the store has said to it.
    pub(super) fn heard(&self, asked: &Asked, answer: &Usages) {
        let (usages, at) = (answer.usages(), answer.at());
        let subjects = asked.subjects.iter().zip(usages);
        if answer.is_allowed() {
            // It was charged: whoever is denied by the same counters waits longer now.
            for ((slot, _), _) in subjects {
                self.changes.add_if_counted_on(*slot);
            }
            return;
        }
        let span = span(usages, &asked.steady, at, self.longest);
        if span.is_zero() {
            return;
        }
        // What becomes of those that had room makes no difference to the outcome.
        let denied = subjects.filter(|(_, usage)| !usage.is_allowed());
        let denied = denied.map(|(subject, _)| *subject);
        let counts_on: Box<[_]> = denied.collect();
        let mut counted_on = counts_on.iter();
        if counted_on.all(|(slot, count)| self.changes.count_on(*slot, *count)) {
            let denial = Denial::new(usages, at, (asked.epoch, asked.at), span, counts_on);
            self.denials.insert(asked.print, Arc::new(denial));
        }
    }

    pub(super) fn slot(&self, subject: &Subject<'_>) -> Slot {
        Slot::of(self.secret.fingerprint(subject))
    }

    /// The slots of all subjects of a batch.
    pub(super) fn slots(&self, batch: &Batch<'_>) -> Vec<Slot> {
        let subjects = batch.checks().iter().map(Check::subject);
        let mut slots: Vec<Slot> = subjects.map(|subject| self.slot(subject)).collect();
        slots.dedup();
        slots
    }

    /// Something changes, from now on until what comes back is dropped.
    pub(super) fn changing(memory: &Arc<Self>, slots: impl IntoIterator<Item = Slot>) -> Change {
        let change = Change {
            memory: Arc::clone(memory),
            slots: slots.into_iter().collect(),
        };
        change.tell();
        change
    }

    pub(super) fn len(&self) -> usize {
        self.denials.len()
    }

    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

/// Something that changes.
pub(super) struct Change {
    memory: Arc<Memory>,
    slots: Box<[Slot]>,
}

impl Change {
    fn tell(&self) {
        for slot in &self.slots {
            self.memory.changes.add(*slot);
        }
    }
}

/// Also if nobody waits for the answer.
impl Drop for Change {
    fn drop(&mut self) {
        self.tell();
    }
}
