//! Random traces that stay close to boundaries.

use proptest::collection::vec;
use proptest::prelude::*;
use tollgate::{Outcome, Quota};

use super::counters::{Deed, Op};
use crate::reference::ModelUsage;
pub(crate) use crate::support::clock::NEW_YEAR_MICROS as NEW_YEAR;

/// Last instant of a trace, well before [`Timestamp::MAX`](tollgate::Timestamp::MAX).
const HORIZON: u64 = 1 << 52;

/// One step of a trace, relative to a quota and to the steps before.
#[derive(Clone, Debug)]
pub(super) struct Step {
    gap: Gap,
    cost: Cost,
    verb: Verb,
    /// Index of the quota. Most steps have the first one.
    tier: usize,
}

#[derive(Clone, Copy, Debug)]
enum Gap {
    Micros(u64),
    /// To a multiple of a unit, or next to it.
    Edge {
        unit: Unit,
        off: i64,
    },
    /// A number of units, plus or minus `off`.
    Span {
        unit: Unit,
        count: u64,
        off: i64,
    },
    /// Sixteenths of a window.
    Part(u64),
    /// To the reset of the last result, or next to it.
    Reset {
        off: i64,
    },
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    Window,
    Bucket,
    Tick,
    Permit,
}

#[derive(Clone, Copy, Debug)]
enum Cost {
    Units(u64),
    /// Eighths of the limit, plus or minus `off`. May exceed the limit.
    Part {
        eighths: u64,
        off: i64,
    },
    /// What remained after the last result, plus or minus `off`.
    Rest {
        off: i64,
    },
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Decide,
    Peek,
    Record,
    /// Refunds the charge that is this many charges back.
    Refund(usize),
}

/// Traces of all operations on a counter.
pub(super) fn traces(length: usize) -> impl Strategy<Value = Vec<Step>> {
    let verbs = prop_oneof![
        6 => Just(Verb::Decide),
        1 => Just(Verb::Peek),
        1 => Just(Verb::Record),
        1 => (0..3_usize).prop_map(Verb::Refund),
    ];
    let tiers = prop_oneof![3 => Just(0), 1 => 1..4_usize];
    let steps = (gaps(), costs(), verbs, tiers);
    let steps = steps.prop_map(|(gap, cost, verb, tier)| Step {
        gap,
        cost,
        verb,
        tier,
    });
    vec(steps, 1..=length)
}

/// Traces of clients that charge as much as possible as early as possible.
pub(super) fn greedy_traces(
    length: usize,
    tiers: impl Strategy<Value = usize>,
) -> impl Strategy<Value = Vec<Step>> {
    let off = || -1..=1_i64;
    let gaps = prop_oneof![
        3 => Just(Gap::Reset { off: 0 }),
        1 => off().prop_map(|off| Gap::Reset { off }),
        2 => gaps(),
    ];
    let costs = prop_oneof![
        3 => Just(Cost::Rest { off: 0 }),
        2 => Just(Cost::Units(1)),
        1 => costs(),
    ];
    let steps = (gaps, costs, tiers).prop_map(|(gap, cost, tier)| Step {
        gap,
        cost,
        verb: Verb::Decide,
        tier,
    });
    vec(steps, 1..=length)
}

fn gaps() -> impl Strategy<Value = Gap> {
    let off = || -1..=1_i64;
    let units = || prop::sample::select(vec![Unit::Window, Unit::Bucket, Unit::Tick, Unit::Permit]);
    prop_oneof![
        3 => Just(Gap::Micros(0)),
        2 => (1..=3_u64).prop_map(Gap::Micros),
        3 => (units(), off()).prop_map(|(unit, off)| Gap::Edge { unit, off }),
        3 => (units(), 1..=3_u64, off()).prop_map(|(unit, count, off)| Gap::Span { unit, count, off }),
        2 => (1..=40_u64).prop_map(Gap::Part),
        2 => off().prop_map(|off| Gap::Reset { off }),
    ]
}

fn costs() -> impl Strategy<Value = Cost> {
    prop_oneof![
        4 => (0..=3_u64).prop_map(Cost::Units),
        3 => (0..=9_u64, -1..=1_i64).prop_map(|(eighths, off)| Cost::Part { eighths, off }),
        2 => (-1..=1_i64).prop_map(|off| Cost::Rest { off }),
    ]
}

/// Start of a trace: around the epoch, or from 2025 on.
pub(super) fn starts() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => 0..=20_u64,
        1 => Just(NEW_YEAR),
        3 => NEW_YEAR..=NEW_YEAR + (1 << 45),
    ]
}

/// Turns steps into operations, relative to the results so far.
#[derive(Debug)]
pub(super) struct Walk {
    tiers: Vec<Quota>,
    now: u64,
    result: Option<ModelUsage>,
    charges: Vec<(u64, u64)>,
}

impl Walk {
    pub(super) fn new(start: u64, tiers: Vec<Quota>) -> Self {
        Self {
            tiers,
            now: start,
            result: None,
            charges: Vec::new(),
        }
    }

    pub(super) fn deed(&mut self, step: &Step) -> Deed {
        let quota = self.tiers[step.tier % self.tiers.len()];
        let next = step.gap.after(self.now, &quota, self.result.as_ref());
        self.now = next.min(HORIZON).max(self.now);
        let mut cost = step.cost.of(&quota, self.result.as_ref());
        let op = match step.verb {
            Verb::Decide => Op::Decide,
            Verb::Peek => Op::Peek,
            // Larger debts saturate, which another test covers.
            Verb::Record if self.used() + cost > 3 * quota.burst() => Op::Decide,
            Verb::Record => Op::Record,
            Verb::Refund(ago) => match self.charges.iter().rev().nth(ago) {
                Some((at, charged)) => {
                    cost = *charged;
                    Op::Refund(*at)
                }
                None => Op::Peek,
            },
        };
        Deed {
            op,
            quota,
            at: self.now,
            cost,
        }
    }

    /// Records the result of a step. `None` records nothing.
    pub(super) fn note(&mut self, deed: &Deed, result: Option<ModelUsage>) {
        let charged = match deed.op {
            Op::Decide => result.is_some_and(|result| result.outcome == Outcome::Allowed),
            Op::Record => true,
            Op::Peek | Op::Refund(_) => false,
        };
        if charged && deed.cost > 0 {
            self.charges.push((deed.at, deed.cost));
        }
        self.result = result.or(self.result);
    }

    fn used(&self) -> u64 {
        self.result.map_or(0, |result| result.used)
    }
}

impl Gap {
    fn after(self, now: u64, quota: &Quota, result: Option<&ModelUsage>) -> u64 {
        match self {
            Self::Micros(micros) => now + micros,
            Self::Edge { unit, off } => {
                let unit = unit.of(quota);
                (now / unit + 1)
                    .saturating_mul(unit)
                    .saturating_add_signed(off)
            }
            Self::Span { unit, count, off } => {
                (now + count * unit.of(quota)).saturating_add_signed(off)
            }
            Self::Part(sixteenths) => now + Unit::Window.of(quota) * sixteenths / 16,
            Self::Reset { off } => {
                result.map_or(now, |result| result.reset_at.saturating_add_signed(off))
            }
        }
    }
}

impl Unit {
    fn of(self, quota: &Quota) -> u64 {
        let window = quota.window().duration().as_micros();
        let micros = match self {
            Self::Window => window,
            Self::Bucket => window.div_ceil(u128::from(quota.buckets().max(1))),
            Self::Tick => quota.tick().as_micros(),
            Self::Permit => (window / u128::from(quota.amount())).max(1),
        };
        u64::try_from(micros).expect("at most ten years")
    }
}

impl Cost {
    fn of(self, quota: &Quota, result: Option<&ModelUsage>) -> u64 {
        match self {
            Self::Units(units) => units,
            Self::Part { eighths, off } => (quota.burst() * eighths / 8).saturating_add_signed(off),
            Self::Rest { off } => {
                let used = result.map_or(0, |result| result.used);
                quota
                    .burst()
                    .saturating_sub(used)
                    .saturating_add_signed(off)
            }
        }
    }
}
