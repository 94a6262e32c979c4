//! Change counters per subject, which invalidate cached denials: [`SubjectVersions`].

use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::subject_hash::Fingerprint;

/// A version for each subject, which changes whenever its counters may have changed.
///
/// Subjects share slots. A collision invalidates a denial too early, which costs a store call.
pub(super) struct SubjectVersions {
    /// Version in the upper 63 bits; [`IN_USE`] in the lowest.
    slots: Box<[AtomicU64]>,
}

/// Index of a subject's version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct VersionSlot(u32);

/// Set while a cached denial depends on the version. Charges change only such versions, so that the
/// slots of callers that are never denied stay in shared cache lines.
const IN_USE: u64 = 1;
const NEXT_VERSION: u64 = 2;
/// 128 KiB.
const SLOTS: u64 = 16_384;

impl VersionSlot {
    pub(super) const fn of(subject: Fingerprint) -> Self {
        Self((subject.place % SLOTS) as u32)
    }
}

impl SubjectVersions {
    pub(super) fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn slot(&self, slot: VersionSlot) -> &AtomicU64 {
        &self.slots[slot.0 as usize]
    }

    #[inline]
    pub(super) fn current(&self, slot: VersionSlot) -> u64 {
        self.slot(slot).load(Ordering::Acquire) & !IN_USE
    }

    /// Marks the version as in use. Returns whether it is still `expected`.
    pub(super) fn mark_in_use(&self, slot: VersionSlot, expected: u64) -> bool {
        let before = self.slot(slot).fetch_or(IN_USE, Ordering::AcqRel);
        before & !IN_USE == expected
    }

    pub(super) fn change(&self, slot: VersionSlot) {
        self.slot(slot).fetch_add(NEXT_VERSION, Ordering::AcqRel);
    }

    /// Changes the version if a denial depends on it.
    #[inline]
    pub(super) fn change_if_in_use(&self, slot: VersionSlot) {
        let found = self.slot(slot).load(Ordering::Acquire);
        if found & IN_USE != 0 {
            let next = (found & !IN_USE).wrapping_add(NEXT_VERSION);
            // If the exchange fails, another thread has changed the version, which is enough.
            let _ =
                self.slot(slot)
                    .compare_exchange(found, next, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}
