//! Whether something has happened to a subject since a denial was asked for.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::fingerprint::Fingerprint;

/// A number for each subject, which is another one after every change. Subjects share them: what
/// is forgotten too much is asked about once more.
pub(super) struct SubjectVersions {
    /// The number of versions, and in the lowest bit whether a denial counts on there being none.
    slots: Box<[AtomicU64]>,
}

/// Where the number of a subject is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct VersionSlot(u32);

const COUNTED_ON: u64 = 1;
const ONE_CHANGE: u64 = 2;
/// 128 KiB of them.
const SLOTS: u64 = 16_384;

impl VersionSlot {
    pub(super) fn of(print: Fingerprint) -> Self {
        // Below the number of slots.
        Self((print.place % SLOTS) as u32)
    }
}

impl SubjectVersions {
    pub(super) fn none() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn of(&self, slot: VersionSlot) -> &AtomicU64 {
        &self.slots[slot.0 as usize]
    }

    /// How many there were.
    #[inline]
    pub(super) fn count(&self, slot: VersionSlot) -> u64 {
        self.of(slot).load(Ordering::Acquire) & !COUNTED_ON
    }

    /// Counts on there having been so many. Says whether it is true.
    pub(super) fn count_on(&self, slot: VersionSlot, count: u64) -> bool {
        let before = self.of(slot).fetch_or(COUNTED_ON, Ordering::AcqRel);
        before & !COUNTED_ON == count
    }

    /// There is one more.
    pub(super) fn add(&self, slot: VersionSlot) {
        self.of(slot).fetch_add(ONE_CHANGE, Ordering::AcqRel);
    }

    /// There is one more, if that makes a difference to anybody.
    #[inline]
    pub(super) fn add_if_counted_on(&self, slot: VersionSlot) {
        let now = self.of(slot).load(Ordering::Acquire);
        if now & COUNTED_ON != 0 {
            let next = (now & !COUNTED_ON).wrapping_add(ONE_CHANGE);
            // If it is another one by now, somebody else has changed it, or counts on it too.
            let _ = self
                .of(slot)
                .compare_exchange(now, next, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}
