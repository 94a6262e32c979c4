//! One body for `decide`, `peek` and `record`: look up all counters, decide the groups, then write.

use super::MemoryStore;
use super::evaluate::{CellTarget, CheckStep, Mode, refund};
use super::shards::LockedShards;
use super::table::CellTable;
use crate::batch::{Batch, Check, Group, MAX_BATCH};
use crate::clock::Timestamp;
use crate::store::StoreFuture;
use crate::store::subject_hash::Fingerprint;
use crate::sync::Ordering;
use crate::usage::Usages;

/// Sweeping that is added for a new counter, on top of 1 for each check.
const SWEEP_DEBT_OF_NEW: u32 = 16;

impl MemoryStore {
    #[inline(always)]
    pub(super) fn apply(
        &self,
        batch: &Batch<'_>,
        now: Timestamp,
        mode: Mode,
    ) -> StoreFuture<Usages> {
        match batch.checks().len() {
            1 => self.apply_up_to::<1>(batch, now, mode),
            0..=4 => self.apply_up_to::<4>(batch, now, mode),
            _ => self.apply_up_to::<MAX_BATCH>(batch, now, mode),
        }
    }

    /// Applies a batch of at most `N` checks, or of exactly one if `N` is 1: the compiler then removes the
    /// loops (56 instructions).
    ///
    /// Cells are written only after the last check was evaluated and each new counter has a place, so
    /// a group is charged whole or not at all. Between the last look-up and the first insertion no cell
    /// moves.
    #[inline(never)]
    fn apply_up_to<const N: usize>(
        &self,
        batch: &Batch<'_>,
        now: Timestamp,
        mode: Mode,
    ) -> StoreFuture<Usages> {
        let checks = batch.checks();
        debug_assert!(checks.len() <= N);
        let count = if N == 1 { 1 } else { checks.len().min(N) };
        let checks = &checks[..count];
        let prints = self.hasher.fingerprints::<N>(checks);
        let mut locked = LockedShards::<N>::lock(self, &prints[..checks.len()]);
        let now = locked.latest(now.min(Timestamp::MAX).as_micros());
        if mode != Mode::Peek {
            // A peek may be ahead of time; it does not move the clock of the tables.
            locked.each(|table| table.latest = now);
        }
        let mut steps = [CheckStep::default(); N];
        let steps = &mut steps[..checks.len()];
        let missing = look_up(&mut locked, steps, checks, &prints);
        if missing > 0 {
            self.make_room(&mut locked, steps, checks, &prints, now, mode);
            if mode != Mode::Peek {
                self.reserve(&mut locked, steps);
            }
        }
        for (index, (check, step)) in checks.iter().zip(&mut *steps).enumerate() {
            step.evaluate(locked.table(index), check, check.cost(), now, mode);
        }
        decide_groups(batch, steps, mode);
        let mut is_sweep_due = false;
        for (index, (check, step)) in checks.iter().zip(&mut *steps).enumerate() {
            let table = locked.table(index);
            if step.is_charged {
                charge(table, step, check, now, mode);
            } else {
                leave_uncharged(table, step, check, now, mode);
            }
            is_sweep_due |= mode != Mode::Peek && table.add_sweep_debt(1);
        }
        if missing > 0 && mode != Mode::Peek {
            is_sweep_due |= self.insert_new(&mut locked, steps, checks, now, mode);
        }
        if is_sweep_due {
            self.sweep_due(&mut locked, checks.len());
        }
        drop(locked);
        let usages = checks.iter().zip(&*steps);
        let usages = usages.map(|(check, step)| step.usage(check, now, mode));
        let at = Timestamp::again(now);
        // Returned as a future because moving usages into one takes longer than computing one.
        StoreFuture::ready(Ok(Usages::collect(batch.live_len(), at, usages)))
    }

    /// Inserts the new counters of charged groups. Returns whether a sweep is due.
    ///
    /// Victims are replaced last, because removing a cell moves others.
    #[inline(never)]
    fn insert_new<const N: usize>(
        &self,
        locked: &mut LockedShards<'_, N>,
        steps: &mut [CheckStep],
        checks: &[Check<'_>],
        now: u64,
        mode: Mode,
    ) -> bool {
        let mut is_sweep_due = false;
        for (index, (check, step)) in checks.iter().zip(&mut *steps).enumerate() {
            let CellTarget::Vacant(bucket) = step.target else {
                continue;
            };
            if step.is_charged && check.cost() > 0 {
                let table = locked.table(index);
                let state = step.charge(table, check, now, mode);
                table.insert(bucket, step.tag, state);
                is_sweep_due |= table.add_sweep_debt(SWEEP_DEBT_OF_NEW);
            } else {
                self.subtract_keys(1);
            }
        }
        for (index, (check, step)) in checks.iter().zip(steps).enumerate() {
            let CellTarget::Victim(victim) = step.target else {
                continue;
            };
            if !step.is_charged || check.cost() == 0 {
                continue;
            }
            let table = locked.table(index);
            let state = step.charge(table, check, now, mode);
            if let Some(old) = table.find(victim) {
                if !table.has_expired(table.cell(old), now) {
                    self.evicted.fetch_add(1, Ordering::Relaxed);
                }
                table.replace(old, step.tag, state);
            } else {
                // It had expired and was dropped by `reserve`.
                self.keys.fetch_add(1, Ordering::Relaxed);
                table.insert(table.home(step.tag.place), step.tag, state);
            }
            is_sweep_due |= table.add_sweep_debt(SWEEP_DEBT_OF_NEW);
        }
        is_sweep_due
    }

    pub(super) fn refund_all(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) {
        let checks = batch.checks();
        let prints = self.hasher.fingerprints::<MAX_BATCH>(checks);
        let mut locked = LockedShards::<MAX_BATCH>::lock(self, &prints[..checks.len()]);
        let now = locked.latest(now.min(Timestamp::MAX).as_micros());
        locked.each(|table| table.latest = now);
        for (index, (check, print)) in checks.iter().zip(prints).enumerate() {
            let table = locked.table(index);
            if let Some(cell) = table.find(print.tag(check.counter())) {
                refund(table, cell, check, charged_at.as_micros(), now);
            }
        }
    }
}

/// Looks up the cell of each check, in one probe each. Returns how many are missing.
///
/// All are looked up before the first is evaluated, so that the processor fetches them in parallel.
#[inline(always)]
fn look_up<const N: usize>(
    locked: &mut LockedShards<'_, N>,
    steps: &mut [CheckStep],
    checks: &[Check<'_>],
    prints: &[Fingerprint; N],
) -> usize {
    let mut missing = 0;
    for (index, (check, step)) in checks.iter().zip(steps).enumerate() {
        if check.quota().counts_nothing() {
            continue;
        }
        step.tag = prints[index].tag(check.counter());
        step.target = locked.table(index).find_or_vacant(step.tag).into();
        missing += usize::from(matches!(step.target, CellTarget::Vacant(_)));
    }
    missing
}

/// Marks the steps of each group that is charged: all groups of a record, none of a peek, else those
/// in which each check has room. A dry run also needs an admitted live group.
#[inline(always)]
fn decide_groups(batch: &Batch<'_>, steps: &mut [CheckStep], mode: Mode) {
    let is_admitted = |steps: &[CheckStep]| match mode {
        Mode::Decide => steps.iter().all(|step| step.has_room),
        Mode::Peek => false,
        Mode::Record => true,
    };
    let live = batch.live_len().min(steps.len());
    let is_live_admitted = is_admitted(&steps[..live]);
    for step in &mut *steps {
        step.is_charged = is_live_admitted;
    }
    if live == steps.len() || !is_live_admitted {
        return;
    }
    for (_, range) in batch.groups().filter(|(group, _)| *group != Group::Live) {
        let is_charged = is_admitted(&steps[range.clone()]);
        for step in &mut steps[range] {
            step.is_charged = is_charged;
        }
    }
}

/// Writes a charge to a counter that exists.
#[inline(always)]
fn charge(table: &mut CellTable, step: &mut CheckStep, check: &Check<'_>, now: u64, mode: Mode) {
    if let CellTarget::Found(cell) = step.target
        && check.cost() > 0
    {
        table.cell_mut(cell).state = step.charge(table, check, now, mode);
    }
}

/// Protects a counter that denies its check. Evaluates a check that has room without its cost, because
/// its group is not charged.
///
/// Not inlined: with a second copy of the evaluation, the registers do not suffice for the first.
#[inline(never)]
fn leave_uncharged(
    table: &mut CellTable,
    step: &mut CheckStep,
    check: &Check<'_>,
    now: u64,
    mode: Mode,
) {
    if step.has_room {
        if check.cost() > 0 {
            step.evaluate(table, check, 0, now, mode);
        }
    } else if let CellTarget::Found(cell) = step.target
        && mode == Mode::Decide
    {
        table.cell_mut(cell).protect();
    }
}
