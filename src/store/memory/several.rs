//! The short way for several checks: few, of one or two subjects, on small counters that are
//! there.

use super::MemoryStore;
use super::cell::Words;
use super::locked::Pair;
use super::table::{Place, Table};
use super::weigh::{step_plain, usage_after};
use crate::batch::{Check, MAX_CHECKS};
use crate::clock::Timestamp;
use crate::store::fingerprint::{Fingerprint, Secret};
use crate::usage::Usages;

/// How many checks the short way is for.
const FEW: usize = 4;

/// One or two subjects, and the checks of each.
#[derive(Clone, Copy)]
pub(super) struct Groups<'c> {
    pub(super) checks: [&'c [Check<'c>]; 2],
    /// The same twice, if there is but one.
    pub(super) prints: [Fingerprint; 2],
}

impl<'c> Groups<'c> {
    /// None if there are more subjects, or more checks. Those of one subject follow each other and
    /// point at the same one.
    #[inline(always)]
    fn new(secret: &Secret, checks: &'c [Check<'c>]) -> Option<Self> {
        let first = checks.first().filter(|_| checks.len() <= FEW)?.subject();
        let is_of = |subject, check: &Check<'_>| std::ptr::eq(check.subject(), subject);
        let others = checks.iter().position(|check| !is_of(first, check));
        let print = secret.fingerprint(first);
        let Some(others) = others else {
            return Some(Self {
                checks: [checks, &[]],
                prints: [print; 2],
            });
        };
        let (own, others) = checks.split_at(others);
        let second = others[0].subject();
        others
            .iter()
            .all(|check| is_of(second, check))
            .then(|| Self {
                checks: [own, others],
                prints: [print, secret.fingerprint(second)],
            })
    }

    /// How many checks each has.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "they are few")]
    pub(super) fn counts(&self) -> [u8; 2] {
        self.checks.map(|checks| checks.len() as u8)
    }

    /// One for each check.
    #[cold]
    pub(super) fn prints(&self) -> [Fingerprint; MAX_CHECKS] {
        let [first, second] = self.prints;
        let own = self.checks[0].len();
        std::array::from_fn(|index| if index < own { first } else { second })
    }
}

/// What is to be done for one check.
///
/// The words of the counter after it are kept apart: side by side they would be copied as one piece,
/// and what was just written as two the processor hands on as one only after a while.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Step {
    first: u64,
    weight: u64,
    second: u64,
    place: Place,
}

impl Step {
    #[inline(always)]
    const fn words(&self) -> Words {
        [self.first, self.second]
    }
}

/// Where a batch is after the short way.
pub(super) enum Way {
    /// At its end.
    Done,
    /// Nothing has happened. Its fingerprints, if they are known.
    Long(Option<[Fingerprint; MAX_CHECKS]>),
}

/// Why the short way ends.
pub(super) enum End {
    /// There is no room.
    Refused,
    /// A counter is not there, on the heap, or not counted as its quota counts.
    Unknown,
}

impl MemoryStore {
    /// Charges all of them, or none.
    #[inline(always)]
    pub(super) fn charge_known(
        &self,
        checks: &[Check<'_>],
        now: Timestamp,
        verdict: &mut Usages,
    ) -> Way {
        let Some(groups) = Groups::new(&self.secret, checks) else {
            return Way::Long(None);
        };
        let mut pair = Pair::lock(self, &groups);
        let now = pair.instant(now.as_micros());
        let mut steps = [Step::default(); FEW];
        match take_steps(&mut pair, &groups, now, &mut steps) {
            Ok(()) => {}
            Err(End::Unknown) => return Way::Long(Some(groups.prints())),
            Err(End::Refused) => {
                *verdict = Usages::with_live(checks.len(), Timestamp::again(now));
                self.turn_away(&mut pair, checks, &groups.prints(), verdict);
                return Way::Done;
            }
        }
        if pair.owes_a_share() {
            self.sweep_due(&mut pair, checks.len());
        }
        pair.release_others();
        *verdict = Usages::with_live(checks.len(), Timestamp::again(now));
        for (check, step) in checks.iter().zip(&steps) {
            verdict.push(usage_after(step.words(), step.weight, check, now));
        }
        Way::Done
    }
}

/// Writes what comes of all checks, if all have room.
#[inline(always)]
fn take_steps(
    pair: &mut Pair<'_>,
    groups: &Groups<'_>,
    now: u64,
    steps: &mut [Step; FEW],
) -> Result<(), End> {
    let [own, others] = groups.checks;
    let (own_steps, other_steps) = steps.split_at_mut(own.len().min(FEW));
    // All are looked for before any is looked at: so the processor fetches them at once.
    find(pair.own(), groups.prints[0], own, own_steps)?;
    find(pair.others(), groups.prints[1], others, other_steps)?;
    weigh(pair.own(), own, now, own_steps)?;
    weigh(pair.others(), others, now, other_steps)?;
    write(pair.own(), own, own_steps);
    write(pair.others(), others, other_steps);
    Ok(())
}

#[inline(always)]
fn find(
    table: &Table,
    print: Fingerprint,
    checks: &[Check<'_>],
    steps: &mut [Step],
) -> Result<(), End> {
    let mut near = None;
    for (check, step) in checks.iter().zip(steps) {
        let tag = print.tag(check.counter());
        let found = match near {
            Some(near) => table.find_near(near, tag),
            None => table.find(tag),
        };
        step.place = found.ok_or(End::Unknown)?;
        near = Some(step.place);
    }
    Ok(())
}

#[inline(always)]
fn weigh(table: &Table, checks: &[Check<'_>], now: u64, steps: &mut [Step]) -> Result<(), End> {
    for (check, step) in checks.iter().zip(steps) {
        let (words, weight) = step_plain(table.cell(step.place).words, check, now)?;
        ([step.first, step.second], step.weight) = (words, weight);
    }
    Ok(())
}

#[inline(always)]
fn write(table: &mut Table, checks: &[Check<'_>], steps: &[Step]) {
    for (check, step) in checks.iter().zip(steps) {
        if check.cost() > 0 {
            table.cell_mut(step.place).words = step.words();
        }
    }
}
