//! One batch: look at every counter, then write all or nothing.

use super::MemoryStore;
use super::cell::{Cell, Kind, Rank, Small, Words, heap_words};
use super::fingerprint::{Fingerprint, Tag};
use super::locked::Locked;
use super::table::{Place, Table};
use crate::algorithm::State;
use crate::algorithm::fixed_window::FixedWindow;
use crate::algorithm::sliding_window::SlidingWindow;
use crate::algorithm::token_bucket::TokenBucket;
use crate::batch::{Batch, Check, MAX_CHECKS};
use crate::clock::Timestamp;
use crate::decision::{Usage, Verdict};
use crate::quota::Algorithm;
use crate::sync::{Ordering, try_lock};

/// How much sweeping is owed for a check, and for one that brings a new counter.
const WORK_OF_A_CALL: u32 = 1;
const WORK_OF_A_NEWCOMER: u32 = 16;

/// When to charge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    IfRoom,
    Always,
}

/// What is to be written for one check.
#[derive(Clone, Copy, Default)]
struct Plan {
    tag: Tag,
    /// Where the counter is; a newcomer is nowhere yet.
    place: Option<Place>,
    write: Write,
    victim: Option<Tag>,
}

#[derive(Clone, Copy, Default)]
enum Write {
    #[default]
    Nothing,
    Cell(Words),
    Heap,
}

/// There is no place for the counter of this check.
struct NoRoom(usize);

impl MemoryStore {
    #[inline]
    pub(super) fn fingerprints(&self, batch: &Batch<'_>) -> [Fingerprint; MAX_CHECKS] {
        let mut prints = [Fingerprint::default(); MAX_CHECKS];
        let mut last: Option<(&_, Fingerprint)> = None;
        for (check, print) in batch.checks().zip(&mut prints) {
            // Checks of one subject follow each other and point at the same one.
            *print = match last {
                Some((subject, known)) if std::ptr::eq(subject, check.subject()) => known,
                _ => self.secret.fingerprint(check.subject()),
            };
            last = Some((check.subject(), *print));
        }
        prints
    }

    #[inline]
    pub(super) fn charge(&self, batch: &Batch<'_>, now: Timestamp, mode: Mode) -> Verdict {
        let mut prints = self.fingerprints(batch);
        loop {
            match self.try_charge(batch, &prints[..batch.len()], now, mode) {
                Ok(verdict) => return verdict,
                // Nothing was written. Next time around this check is on the shared counter,
                // whose place is never refused, so this ends.
                Err(NoRoom(index)) => {
                    self.overflowed.fetch_add(1, Ordering::Relaxed);
                    prints[index] = self.overflow;
                }
            }
        }
    }

    #[inline]
    fn try_charge(
        &self,
        batch: &Batch<'_>,
        prints: &[Fingerprint],
        now: Timestamp,
        mode: Mode,
    ) -> Result<Verdict, NoRoom> {
        let mut locked = Locked::new(self, prints);
        let now = locked.instant(now.as_micros());
        let mut verdict = Verdict::new(Timestamp::from_micros(now));
        let mut plans = [Plan::default(); MAX_CHECKS];
        let plans = &mut plans[..prints.len()];
        let mut newcomers = 0;
        for ((check, print), plan) in batch.checks().zip(prints).zip(plans.iter_mut()) {
            let table = locked.table(self.shard_of(*print));
            plan.tag = print.tag(check.counter());
            plan.place = table.find(plan.tag);
            let (usage, write) = weigh(table, plan.place, check, now, mode);
            plan.write = write;
            newcomers += usize::from(plan.place.is_none() && !matches!(write, Write::Nothing));
            verdict.push(usage);
        }
        if mode == Mode::IfRoom && !verdict.is_allowed() {
            self.uncharged(&mut locked, batch, plans, prints, &mut verdict);
            self.sweep_a_little(&mut locked, prints);
            return Ok(verdict);
        }
        if newcomers > 0 {
            self.make_room(&mut locked, plans, prints, newcomers)?;
        }
        self.commit(&mut locked, batch, plans, prints, now);
        Ok(verdict)
    }

    /// Denied by another: whoever had room says how it stands without the charge.
    #[cold]
    fn uncharged(
        &self,
        locked: &mut Locked<'_>,
        batch: &Batch<'_>,
        plans: &[Plan],
        prints: &[Fingerprint],
        verdict: &mut Verdict,
    ) {
        let now = verdict.at().as_micros();
        let rows = batch.checks().zip(plans).zip(prints);
        for (((check, plan), print), usage) in rows.zip(verdict.usages_mut()) {
            if usage.is_allowed() {
                let table = locked.table(self.shard_of(*print));
                *usage = weigh(table, plan.place, &check.with_cost(0), now, Mode::IfRoom).0;
            }
        }
    }

    /// Whoever is denied pays for sweeping as well.
    fn sweep_a_little(&self, locked: &mut Locked<'_>, prints: &[Fingerprint]) {
        for print in prints {
            let table = locked.table(self.shard_of(*print));
            if table.owes_a_share(WORK_OF_A_CALL) {
                self.sweep_shares(table);
            }
        }
    }

    /// A share of this table, and one of another: those that nobody calls on are swept too.
    #[cold]
    fn sweep_shares(&self, table: &mut Table) {
        let mut gone = table.sweep_share();
        let other = self.next_to_sweep.fetch_add(1, Ordering::Relaxed) % self.shards.len();
        // Held by somebody, perhaps by this very call: then it is not left alone anyway.
        if let Some(mut other) = try_lock(&self.shards[other].0) {
            other.latest = other.latest.max(table.latest);
            gone += other.sweep_share();
        }
        self.gone(gone);
    }

    #[inline]
    fn gone(&self, count: usize) {
        if count > 0 {
            self.keys.fetch_sub(count, Ordering::Relaxed);
        }
    }

    /// Finds a place for every newcomer, without writing anything yet.
    #[inline]
    fn make_room(
        &self,
        locked: &mut Locked<'_>,
        plans: &mut [Plan],
        prints: &[Fingerprint],
        newcomers: usize,
    ) -> Result<(), NoRoom> {
        let before = self.keys.fetch_add(newcomers, Ordering::Relaxed);
        let crowded = before + newcomers > self.capacity;
        let full = |table: &Table| crowded || table.is_full();
        for index in 0..plans.len() {
            let Plan {
                place, write, tag, ..
            } = plans[index];
            let table = locked.table(self.shard_of(prints[index]));
            if place.is_some() || matches!(write, Write::Nothing) || !full(table) {
                continue;
            }
            let spared = |other: Tag| {
                // The shared counters stand in for everybody who has no place.
                other.place == self.overflow.place
                    || plans
                        .iter()
                        .any(|plan| plan.tag == other || plan.victim == Some(other))
            };
            let victim = table.victim(tag.place, spared);
            if victim.is_none() && prints[index] != self.overflow {
                self.keys.fetch_sub(newcomers, Ordering::Relaxed);
                return Err(NoRoom(index));
            }
            plans[index].victim = victim;
        }
        Ok(())
    }

    #[inline]
    fn commit(
        &self,
        locked: &mut Locked<'_>,
        batch: &Batch<'_>,
        plans: &[Plan],
        prints: &[Fingerprint],
        now: u64,
    ) {
        // Those that have a place first: newcomers may move others about.
        for ((check, plan), print) in batch.checks().zip(plans).zip(prints) {
            let table = locked.table(self.shard_of(*print));
            match (plan.place, plan.write) {
                (Some(place), Write::Cell(words)) => table.cell_mut(place).words = words,
                (Some(place), Write::Heap) => charge_heap(table, place, check, now),
                _ => {}
            }
        }
        let mut gone = 0;
        for ((check, plan), print) in batch.checks().zip(plans).zip(prints) {
            let table = locked.table(self.shard_of(*print));
            let mut work = WORK_OF_A_CALL;
            if plan.place.is_none() {
                let words = match plan.write {
                    Write::Nothing => continue,
                    Write::Cell(words) => words,
                    Write::Heap => new_on_heap(table, check, now),
                };
                work = WORK_OF_A_NEWCOMER;
                match plan.victim {
                    None => gone += table.insert(plan.tag, words),
                    Some(victim) => gone += self.evict(table, victim, plan.tag, words),
                }
            }
            if table.owes_a_share(work) {
                self.sweep_shares(table);
            }
        }
        self.gone(gone);
    }

    /// Puts a newcomer in the place of its victim, and says how many are gone by that.
    #[cold]
    fn evict(&self, table: &mut Table, victim: Tag, tag: Tag, words: Words) -> usize {
        // Another newcomer of this batch may have swept it away in the meantime.
        let Some(place) = table.find(victim) else {
            return table.insert(tag, words);
        };
        if table.cell(place).expires_at() > table.latest {
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
        1 + table.replace(place, tag, words)
    }

    pub(super) fn look(&self, batch: &Batch<'_>, now: Timestamp) -> Verdict {
        let prints = self.fingerprints(batch);
        let prints = &prints[..batch.len()];
        let mut locked = Locked::new(self, prints);
        let now = locked.instant(now.as_micros());
        let mut verdict = Verdict::new(Timestamp::from_micros(now));
        for (check, print) in batch.checks().zip(prints) {
            let table = locked.table(self.shard_of(*print));
            let place = table.find(print.tag(check.counter()));
            let asked = weigh(table, place, check, now, Mode::IfRoom).0;
            verdict.push(if asked.is_allowed() {
                weigh(table, place, &check.with_cost(0), now, Mode::IfRoom).0
            } else {
                asked
            });
        }
        verdict
    }

    pub(super) fn discharge(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) {
        let prints = self.fingerprints(batch);
        let prints = &prints[..batch.len()];
        let mut locked = Locked::new(self, prints);
        let now = locked.instant(now.as_micros());
        for (check, print) in batch.checks().zip(prints) {
            let table = locked.table(self.shard_of(*print));
            if let Some(place) = table.find(print.tag(check.counter())) {
                give_back(table, place, check, charged_at.as_micros(), now);
            }
        }
    }
}

/// What a counter says, and what would have to be written for it.
#[inline]
fn weigh(
    table: &Table,
    place: Option<Place>,
    check: &Check<'_>,
    now: u64,
    mode: Mode,
) -> (Usage, Write) {
    if check.quota().is_blocked() {
        return (Usage::blocked(Timestamp::from_micros(now)), Write::Nothing);
    }
    let cell = place.map(|place| table.cell(place));
    match check.quota().algorithm() {
        Algorithm::TokenBucket => weigh_small::<TokenBucket>(cell, check, now, mode),
        Algorithm::SlidingWindow => weigh_small::<SlidingWindow>(cell, check, now, mode),
        Algorithm::FixedWindow => weigh_small::<FixedWindow>(cell, check, now, mode),
        Algorithm::SlidingBuckets | Algorithm::SlidingLog => {
            weigh_heap(table, cell, check, now, mode)
        }
    }
}

#[inline]
fn weigh_small<S: Small>(
    cell: Option<&Cell>,
    check: &Check<'_>,
    now: u64,
    mode: Mode,
) -> (Usage, Write) {
    let (quota, cost) = (check.quota(), check.cost());
    let state = match cell {
        Some(cell) if cell.kind() == Some(S::KIND) => S::read(cell.words, quota),
        _ => S::default(),
    };
    let mut state = state.roll(quota, now);
    let usage = state.assess(quota, now, cost);
    if cost == 0 || (mode == Mode::IfRoom && !usage.is_allowed()) {
        return (usage, Write::Nothing);
    }
    state.charge(quota, now, cost);
    let usage = if mode == Mode::Always {
        state.assess(quota, now, 0)
    } else {
        usage
    };
    (usage, Write::Cell(state.write(quota, Rank::of(&usage))))
}

fn weigh_heap(
    table: &Table,
    cell: Option<&Cell>,
    check: &Check<'_>,
    now: u64,
    mode: Mode,
) -> (Usage, Write) {
    let (quota, cost) = (check.quota(), check.cost());
    let at = Timestamp::from_micros(now);
    let kept = cell
        .and_then(Cell::heap_index)
        .and_then(|index| table.heap.get(index));
    let usage = match (kept, mode) {
        (Some(state), Mode::IfRoom) => state.assess(quota, at, cost),
        (None, Mode::IfRoom) => State::fresh(quota).assess(quota, at, cost),
        (_, Mode::Always) => {
            let mut state = kept.cloned().unwrap_or_else(|| State::fresh(quota));
            state.charge(quota, at, cost);
            state.assess(quota, at, 0)
        }
    };
    let charges = cost > 0 && (usage.is_allowed() || mode == Mode::Always);
    (usage, if charges { Write::Heap } else { Write::Nothing })
}

fn new_on_heap(table: &mut Table, check: &Check<'_>, now: u64) -> Words {
    let mut state = State::fresh(check.quota());
    let words = charged(&mut state, check, now);
    let index = table.heap.insert(state);
    heap_words(words.0, words.1, index)
}

fn charge_heap(table: &mut Table, place: Place, check: &Check<'_>, now: u64) {
    let index = table.cell(place).heap_index();
    if let Some(state) = index.and_then(|index| table.heap.get_mut(index)) {
        let (expires_at, rank) = charged(state, check, now);
        let words = heap_words(expires_at, rank, index.unwrap_or_default());
        table.cell_mut(place).words = words;
    }
}

/// Charges a state, and says when it expires and how it ranks from then on.
fn charged(state: &mut State, check: &Check<'_>, now: u64) -> (u64, Rank) {
    let now = Timestamp::from_micros(now);
    state.charge(check.quota(), now, check.cost());
    let usage = state.assess(check.quota(), now, 0);
    (
        state.expires_at(check.quota()).as_micros(),
        Rank::of(&usage),
    )
}

fn give_back(table: &mut Table, place: Place, check: &Check<'_>, charged_at: u64, now: u64) {
    if check.quota().is_blocked() {
        return;
    }
    match table.cell(place).kind() {
        Some(Kind::Fixed) => give_back_small::<FixedWindow>(table, place, check, charged_at, now),
        Some(Kind::Sliding) => {
            give_back_small::<SlidingWindow>(table, place, check, charged_at, now)
        }
        Some(Kind::Token) => give_back_small::<TokenBucket>(table, place, check, charged_at, now),
        Some(Kind::Heap) => {
            let index = table.cell(place).heap_index();
            if let Some(state) = index.and_then(|index| table.heap.get_mut(index)) {
                let (charged_at, now) = (
                    Timestamp::from_micros(charged_at),
                    Timestamp::from_micros(now),
                );
                state.give_back(check.quota(), charged_at, now, check.cost());
                let rank = Rank::of(&state.assess(check.quota(), now, 0));
                let expires_at = state.expires_at(check.quota()).as_micros();
                table.cell_mut(place).words =
                    heap_words(expires_at, rank, index.unwrap_or_default());
            }
        }
        None => {}
    }
}

fn give_back_small<S: Small>(
    table: &mut Table,
    place: Place,
    check: &Check<'_>,
    charged_at: u64,
    now: u64,
) {
    let quota = check.quota();
    let mut state = S::read(table.cell(place).words, quota);
    state.give_back(quota, charged_at, now, check.cost());
    let usage = state.assess(quota, now, 0);
    table.cell_mut(place).words = state.write(quota, Rank::of(&usage));
}
