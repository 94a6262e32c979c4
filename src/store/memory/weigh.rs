//! One counter: what it says to a check, and what would have to be written for it.

use super::cell::{Cell, Kind, Rank, Small, Words, heap_words, is_kind};
use super::several::End;
use super::table::{Place, Table};
use crate::algorithm::State;
use crate::algorithm::fixed_window::FixedWindow;
use crate::algorithm::sliding_window::SlidingWindow;
use crate::algorithm::token_bucket::TokenBucket;
use crate::batch::Check;
use crate::clock::Timestamp;
use crate::quota::{Algorithm, Quota};
use crate::store::wall::moved;
use crate::usage::Usage;

/// When to charge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    IfRoom,
    Always,
}

/// What is to be written for one check.
#[derive(Clone, Copy, Default)]
pub(super) enum Write {
    #[default]
    Nothing,
    Cell(Words),
    Heap,
}

/// Says how a counter stands and what is to be written. Changes nothing yet.
#[inline]
pub(super) fn weigh(
    table: &Table,
    place: Option<Place>,
    check: &Check<'_>,
    now: u64,
    mode: Mode,
    write: &mut Write,
) -> Usage {
    if let Some(usage) = Usage::without_counting(check.quota(), now) {
        return usage;
    }
    // A calendar window is counted in wall-clock time. What is returned is on the time line of `now`.
    let (instant, offset) = calendar_time(table, check.quota(), now);
    let cell = place.map(|place| table.cell(place));
    let words = cell.map(|cell| cell.words).unwrap_or_default();
    let mut small = |step: fn(&mut Words, &Check<'_>, u64, Mode) -> (Usage, bool)| {
        let mut words = words;
        let (usage, changed) = step(&mut words, check, instant, mode);
        if changed {
            *write = Write::Cell(words);
        }
        usage
    };
    match check.quota().algorithm() {
        Algorithm::TokenBucket => small(charge_small::<TokenBucket>),
        Algorithm::SlidingWindow => small(charge_small::<SlidingWindow>),
        Algorithm::FixedWindow => small(charge_small::<FixedWindow>).offset_by(-offset),
        Algorithm::SlidingBuckets | Algorithm::SlidingLog => {
            weigh_heap(table, cell, check, now, mode, write)
        }
    }
}

/// Returns the instant at which a quota is counted, and how many microseconds it is ahead of `now`:
/// wall-clock time for calendar windows, else `now`.
#[inline]
fn calendar_time(table: &Table, quota: &Quota, now: u64) -> (u64, i64) {
    if !quota.is_calendar() {
        return (now, 0);
    }
    let offset = table.wall_offset_at(now);
    (moved(now, offset), offset)
}

/// Says how a counter stands without the check, and what it would say to it.
pub(super) fn look_at(table: &Table, place: Option<Place>, check: &Check<'_>, now: u64) -> Usage {
    let look = |check| weigh(table, place, check, now, Mode::IfRoom, &mut Write::Nothing);
    let asked = look(check);
    if asked.is_allowed() && check.cost() > 0 {
        look(&check.with_cost(0))
    } else {
        asked
    }
}

/// What the words of a small counter are after a check, and what is used then, as
/// [`Small::attempt`] says.
#[inline(always)]
pub(super) fn step_plain(words: Words, check: &Check<'_>, now: u64) -> Result<(Words, u64), End> {
    match check.quota().algorithm() {
        Algorithm::TokenBucket => step_of::<TokenBucket>(words, check, now),
        Algorithm::SlidingWindow => step_of::<SlidingWindow>(words, check, now),
        // Quotas that count nothing have this algorithm, too. Calendar windows need the wall clock.
        Algorithm::FixedWindow
            if !check.quota().counts_nothing() && !check.quota().is_calendar() =>
        {
            step_of::<FixedWindow>(words, check, now)
        }
        _ => Err(End::Unknown),
    }
}

#[inline(always)]
fn step_of<S: Small>(words: Words, check: &Check<'_>, now: u64) -> Result<(Words, u64), End> {
    let (quota, cost) = (check.quota(), check.cost());
    let state = S::read_plain(words, quota).ok_or(End::Unknown)?;
    let (after, weight) = state.attempt(quota, now, cost).map_err(|_| End::Refused)?;
    Ok((after.rewrite(words, weight, quota), weight))
}

/// What is said after such a step.
#[inline(always)]
pub(super) fn usage_after(words: Words, weight: u64, check: &Check<'_>, now: u64) -> Usage {
    match check.quota().algorithm() {
        Algorithm::TokenBucket => granted::<TokenBucket>(words, weight, check, now),
        Algorithm::SlidingWindow => granted::<SlidingWindow>(words, weight, check, now),
        _ => granted::<FixedWindow>(words, weight, check, now),
    }
}

#[inline(always)]
fn granted<S: Small>(words: Words, weight: u64, check: &Check<'_>, now: u64) -> Usage {
    let quota = check.quota();
    S::read(words, quota).granted(quota, now, S::used_of(weight, quota))
}

/// Charges a small state where it lies, if it is to be charged; says how it stands and whether
/// it has changed.
fn charge_small<S: Small>(
    words: &mut Words,
    check: &Check<'_>,
    now: u64,
    mode: Mode,
) -> (Usage, bool) {
    let (quota, cost) = (check.quota(), check.cost());
    let mut state = if is_kind(words, S::KIND) {
        S::read(*words, quota)
    } else {
        S::default()
    };
    let asked = match mode {
        Mode::IfRoom => cost,
        Mode::Always => {
            state.charge(quota, now, cost);
            *words = state.write(quota, now);
            0
        }
    };
    match state.attempt(quota, now, asked) {
        Ok((after, weight)) => {
            if asked > 0 {
                *words = after.write(quota, now);
            }
            let used = S::used_of(weight, quota);
            (after.granted(quota, now, used), cost > 0)
        }
        Err(at_now) => {
            let used = at_now.used(quota, now);
            let changed = cost > 0 && mode == Mode::Always;
            (at_now.refused(quota, now, asked, used), changed)
        }
    }
}

fn weigh_heap(
    table: &Table,
    cell: Option<&Cell>,
    check: &Check<'_>,
    now: u64,
    mode: Mode,
    write: &mut Write,
) -> Usage {
    let (quota, cost) = (check.quota(), check.cost());
    let now = Timestamp::from_micros(now);
    let kept = cell
        .and_then(Cell::heap_index)
        .and_then(|index| table.heap.get(index));
    // What is recorded is charged in place; how it stands then is asked afterwards.
    let asked = if mode == Mode::Always { 0 } else { cost };
    let usage = match kept {
        Some(state) => state.assess(quota, now, asked),
        None => State::fresh(quota).assess(quota, now, asked),
    };
    if cost > 0 && (usage.is_allowed() || mode == Mode::Always) {
        *write = Write::Heap;
    }
    usage
}

/// Writes to a counter that has a place.
#[inline]
pub(super) fn write(table: &mut Table, place: Place, check: &Check<'_>, now: u64, write: Write) {
    match write {
        Write::Nothing => {}
        Write::Cell(words) => table.cell_mut(place).words = words,
        Write::Heap => change_heap(table, place, check, now, |state, now| {
            state.charge(check.quota(), now, check.cost());
        }),
    }
}

/// What a newcomer's cell says; `None` if there is nothing to write.
pub(super) fn new_words(
    table: &mut Table,
    check: &Check<'_>,
    now: u64,
    write: Write,
) -> Option<Words> {
    match write {
        Write::Nothing => None,
        Write::Cell(words) => Some(words),
        Write::Heap => {
            let now = Timestamp::from_micros(now);
            let mut state = State::fresh(check.quota());
            state.charge(check.quota(), now, check.cost());
            let (expires_at, rank) = outlook(&state, check, now);
            Some(heap_words(expires_at, rank, table.heap.insert(state)))
        }
    }
}

/// Takes back a charge.
pub(super) fn refund(
    table: &mut Table,
    place: Place,
    check: &Check<'_>,
    charged_at: u64,
    now: u64,
) {
    if Usage::without_counting(check.quota(), now).is_some() {
        return;
    }
    let (instant, offset) = calendar_time(table, check.quota(), now);
    if check.quota().is_calendar() && table.has_stepped_since(charged_at) {
        return;
    }
    match table.cell(place).kind() {
        Some(Kind::Fixed) => {
            let charged_at = moved(charged_at, offset);
            give_back_small::<FixedWindow>(table, place, check, charged_at, instant);
        }
        Some(Kind::Sliding) => {
            give_back_small::<SlidingWindow>(table, place, check, charged_at, now);
        }
        Some(Kind::Token) => give_back_small::<TokenBucket>(table, place, check, charged_at, now),
        Some(Kind::Heap) => change_heap(table, place, check, now, |state, now| {
            let charged_at = Timestamp::from_micros(charged_at);
            state.refund(check.quota(), charged_at, now, check.cost());
        }),
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
    state.refund(quota, charged_at, now, check.cost());
    table.cell_mut(place).words = state.write(quota, now);
}

/// Changes a state on the heap, and notes in its cell what has come of it.
fn change_heap(
    table: &mut Table,
    place: Place,
    check: &Check<'_>,
    now: u64,
    change: impl FnOnce(&mut State, Timestamp),
) {
    let Some(index) = table.cell(place).heap_index() else {
        return;
    };
    if let Some(state) = table.heap.get_mut(index) {
        let now = Timestamp::from_micros(now);
        change(state, now);
        let (expires_at, rank) = outlook(state, check, now);
        table.cell_mut(place).words = heap_words(expires_at, rank, index);
    }
}

/// When a state expires and how it ranks until then.
fn outlook(state: &State, check: &Check<'_>, now: Timestamp) -> (u64, Rank) {
    let usage = state.assess(check.quota(), now, 0);
    (
        state.expires_at(check.quota()).as_micros(),
        Rank::of(usage.used(), check.quota()),
    )
}
