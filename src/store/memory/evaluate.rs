//! Evaluation of one check against one counter: [`CheckStep`].

use super::cell::{InlineState, Kind, PackedState, is_protected, pack_heap};
use super::evict::is_protected_after;
use super::table::{CellIndex, CellTable, ProbeResult};
use crate::algorithm::State;
use crate::algorithm::fixed_window::FixedWindow;
use crate::algorithm::sliding_window::SlidingWindow;
use crate::algorithm::token_bucket::TokenBucket;
use crate::batch::Check;
use crate::clock::Timestamp;
use crate::quota::{Algorithm, Quota};
use crate::store::subject_hash::Tag;
use crate::store::wall::moved;
use crate::usage::Usage;

/// Operation on a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Charge the groups that have room.
    Decide,
    /// As `Decide`, without writing.
    Peek,
    /// Charge all groups.
    Record,
}

/// Cell that a check is counted in.
#[derive(Clone, Copy, Default)]
pub(super) enum CellTarget {
    /// None: the quota is `blocked` or `unlimited`.
    #[default]
    Uncounted,
    Found(CellIndex),
    /// A new cell, to be inserted into this bucket or a later one.
    Vacant(usize),
    /// A new cell, to be inserted in place of the cell with this tag.
    Victim(Tag),
}

impl From<ProbeResult> for CellTarget {
    #[inline(always)]
    fn from(probe: ProbeResult) -> Self {
        match probe {
            ProbeResult::Found(cell) => Self::Found(cell),
            ProbeResult::Vacant(bucket) => Self::Vacant(bucket),
        }
    }
}

/// Evaluation of one check: its cell, the new state and the outcome.
#[derive(Clone, Copy, Default)]
pub(super) struct CheckStep {
    /// State after the charge; unused for states in the heap.
    after: PackedState,
    /// What is used after the charge, in the unit of the algorithm.
    weight: u64,
    /// Microseconds that the wall clock is ahead of `now`; 0 unless the quota is a calendar window.
    wall_offset: i64,
    /// Usage of a log, of buckets, and of quotas that count nothing.
    usage: Usage,
    pub(super) tag: Tag,
    pub(super) target: CellTarget,
    pub(super) has_room: bool,
    /// Whether the group of the check is charged.
    pub(super) is_charged: bool,
}

impl CheckStep {
    /// Evaluates a charge of `cost`. Writes nothing to the table.
    #[inline(always)]
    pub(super) fn evaluate(
        &mut self,
        table: &CellTable,
        check: &Check<'_>,
        cost: u64,
        now: u64,
        mode: Mode,
    ) {
        let quota = check.quota();
        let before = match self.target {
            CellTarget::Uncounted => return self.skip_counting(quota, now),
            CellTarget::Found(index) => table.cell(index).state,
            CellTarget::Vacant(_) | CellTarget::Victim(_) => PackedState::default(),
        };
        match quota.algorithm() {
            Algorithm::TokenBucket => self.advance::<TokenBucket>(before, quota, cost, now, mode),
            Algorithm::SlidingWindow => {
                self.advance::<SlidingWindow>(before, quota, cost, now, mode);
            }
            Algorithm::FixedWindow => {
                self.wall_offset = wall_offset(table, quota, now);
                let now = moved(now, self.wall_offset);
                self.advance::<FixedWindow>(before, quota, cost, now, mode);
            }
            Algorithm::SlidingBuckets | Algorithm::SlidingLog => {
                self.assess_heap(table, quota, cost, now, mode);
            }
        }
    }

    #[cold]
    fn skip_counting(&mut self, quota: &Quota, now: u64) {
        self.usage = Usage::without_counting(quota, now).unwrap_or_default();
        self.has_room = self.usage.is_allowed();
    }

    #[inline(always)]
    fn advance<S: InlineState>(
        &mut self,
        before: PackedState,
        quota: &Quota,
        cost: u64,
        now: u64,
        mode: Mode,
    ) {
        let (before, attempted) = match mode {
            Mode::Decide | Mode::Peek => (before, cost),
            // Charged first and evaluated afterwards.
            Mode::Record => (record::<S>(before, quota, now, cost), 0),
        };
        let state = S::unpack_or_fresh(before, quota);
        self.after = match state.attempt(quota, now, attempted) {
            Ok((after, weight)) => {
                self.has_room = true;
                self.weight = weight;
                let permit = S::permit_weight(quota);
                let protected =
                    is_protected_after(is_protected(before), weight, permit, cost, quota);
                after.pack(quota, protected)
            }
            Err(at_now) => {
                self.has_room = false;
                at_now.pack(quota, true)
            }
        };
    }

    #[inline(never)]
    fn assess_heap(&mut self, table: &CellTable, quota: &Quota, cost: u64, now: u64, mode: Mode) {
        let now = Timestamp::from_micros(now);
        let index = match self.target {
            CellTarget::Found(index) => table.cell(index).heap_index(),
            _ => None,
        };
        // A recorded charge is made first and assessed afterwards.
        let attempted = if mode == Mode::Record { 0 } else { cost };
        self.usage = match index.and_then(|index| table.heap.get(index)) {
            Some(state) => state.assess(quota, now, attempted),
            None => State::fresh(quota).assess(quota, now, attempted),
        };
        self.has_room = self.usage.is_allowed();
    }

    /// Returns the state to write for a charge. States in the heap are charged here.
    #[inline(always)]
    pub(super) fn charge(
        &mut self,
        table: &mut CellTable,
        check: &Check<'_>,
        now: u64,
        mode: Mode,
    ) -> PackedState {
        match check.quota().algorithm() {
            Algorithm::SlidingBuckets | Algorithm::SlidingLog => {
                self.charge_heap(table, check, now, mode)
            }
            _ => self.after,
        }
    }

    #[inline(never)]
    fn charge_heap(
        &mut self,
        table: &mut CellTable,
        check: &Check<'_>,
        now: u64,
        mode: Mode,
    ) -> PackedState {
        let (quota, now) = (check.quota(), Timestamp::from_micros(now));
        let (index, was_protected) = match self.target {
            CellTarget::Found(index) => {
                let cell = table.cell(index);
                (cell.heap_index(), cell.is_protected())
            }
            _ => (None, false),
        };
        let (index, state) = table.heap.get_or_insert(index, quota);
        state.charge(quota, now, check.cost());
        if mode == Mode::Record {
            self.usage = state.assess(quota, now, 0);
        }
        let used = self.usage.used();
        let protected = is_protected_after(was_protected, used, 1, check.cost(), quota);
        pack_heap(state.expires_at(quota).as_micros(), protected, index)
    }

    /// Returns the usage after the evaluation. Needs no lock.
    #[inline(always)]
    pub(super) fn usage(&self, check: &Check<'_>, now: u64, mode: Mode) -> Usage {
        if let CellTarget::Uncounted = self.target {
            return self.usage;
        }
        let attempted = if mode == Mode::Record {
            0
        } else {
            check.cost()
        };
        let quota = check.quota();
        match quota.algorithm() {
            Algorithm::TokenBucket => self.inline_usage::<TokenBucket>(quota, attempted, now),
            Algorithm::SlidingWindow => self.inline_usage::<SlidingWindow>(quota, attempted, now),
            Algorithm::FixedWindow => {
                let now = moved(now, self.wall_offset);
                let usage = self.inline_usage::<FixedWindow>(quota, attempted, now);
                usage.offset_by(-self.wall_offset)
            }
            Algorithm::SlidingBuckets | Algorithm::SlidingLog => self.usage,
        }
    }

    #[inline(always)]
    fn inline_usage<S: InlineState>(&self, quota: &Quota, attempted: u64, now: u64) -> Usage {
        let state = S::unpack(self.after, quota);
        if self.has_room {
            state.granted(quota, now, S::used_of(self.weight, quota))
        } else {
            state.refused(quota, now, attempted, state.used(quota, now))
        }
    }
}

/// Returns the state after a charge of `cost`, whether there is room or not.
///
/// Not inlined: a state whose address is taken would be kept in memory by all modes.
#[inline(never)]
fn record<S: InlineState>(before: PackedState, quota: &Quota, now: u64, cost: u64) -> PackedState {
    let mut state = S::unpack_or_fresh(before, quota);
    state.charge(quota, now, cost);
    state.pack(quota, is_protected(before))
}

/// Returns the microseconds that the time at which a quota is counted is ahead of `now`: those of the
/// wall clock for a calendar window, else 0.
#[inline(always)]
fn wall_offset(table: &CellTable, quota: &Quota, now: u64) -> i64 {
    if quota.is_calendar() {
        table.wall().offset_at(now)
    } else {
        0
    }
}

/// Takes back a charge from the counter in a cell.
pub(super) fn refund(
    table: &mut CellTable,
    index: CellIndex,
    check: &Check<'_>,
    charged_at: u64,
    now: u64,
) {
    let quota = check.quota();
    if quota.counts_nothing() || quota.is_calendar() && table.wall().has_stepped_since(charged_at) {
        return;
    }
    match table.cell(index).kind() {
        Some(Kind::Fixed) => {
            let offset = wall_offset(table, quota, now);
            let (charged_at, now) = (moved(charged_at, offset), moved(now, offset));
            refund_inline::<FixedWindow>(table, index, check, charged_at, now);
        }
        Some(Kind::Sliding) => {
            refund_inline::<SlidingWindow>(table, index, check, charged_at, now);
        }
        Some(Kind::Token) => refund_inline::<TokenBucket>(table, index, check, charged_at, now),
        Some(Kind::Heap) => refund_heap(table, index, check, charged_at, now),
        None => {}
    }
}

fn refund_inline<S: InlineState>(
    table: &mut CellTable,
    index: CellIndex,
    check: &Check<'_>,
    charged_at: u64,
    now: u64,
) {
    let quota = check.quota();
    let cell = table.cell_mut(index);
    let mut state = S::unpack(cell.state, quota);
    state.refund(quota, charged_at, now, check.cost());
    let protected = cell.is_protected() && state.used(quota, now) > 0;
    cell.state = state.pack(quota, protected);
}

fn refund_heap(
    table: &mut CellTable,
    index: CellIndex,
    check: &Check<'_>,
    charged_at: u64,
    now: u64,
) {
    let cell = *table.cell(index);
    let Some(heap_index) = cell.heap_index() else {
        return;
    };
    if let Some(state) = table.heap.get_mut(heap_index) {
        let [charged_at, now] = [charged_at, now].map(Timestamp::from_micros);
        state.refund(check.quota(), charged_at, now, check.cost());
        let expires_at = state.expires_at(check.quota());
        let protected = cell.is_protected() && expires_at > now;
        table.cell_mut(index).state = pack_heap(expires_at.as_micros(), protected, heap_index);
    }
}
