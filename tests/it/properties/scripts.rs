//! The Redis scripts agree with the reference model, and with the states of this crate where the
//! model does not reproduce their rounding.

use std::sync::Arc;

use proptest::prelude::*;
use tokio::runtime::Runtime;
use tollgate::{Batch, Check, Counter, Quota, RedisStore, Store as _, Subject, Timestamp, Usages};

use super::config;
use super::counters::{Counts, Deed, Op, Plain, Stored};
use super::quotas::{large_quotas, quotas, tiers};
use super::traces::{NEW_YEAR, Walk, starts, traces};
use crate::extremes::{extremes, instants};
use crate::redis::Server;
use crate::reference::Reference;
use crate::support::random::Xorshift;
use crate::support::store_ext::StoreExt as _;

/// Three stores on one server, for one counter after the other.
struct Bench {
    stores: [Arc<RedisStore>; 3],
    server: Server,
    _runtime: Runtime,
}

impl Bench {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let _inside = runtime.enter();
        let server = Server::start();
        let store = || Arc::new(server.store().use_client_clock().build().unwrap());
        Self {
            stores: [(); 3].map(|()| store()),
            server,
            _runtime: runtime,
        }
    }

    /// A counter without charges.
    fn counter(&self, quota: &Quota) -> Stored<Arc<RedisStore>> {
        for store in &self.stores {
            let subject = Stored::<Arc<RedisStore>>::subject();
            store.reset_subject(&subject).wait().unwrap();
        }
        Stored::of(quota, self.stores.clone())
    }
}

#[test]
fn script_agrees_with_its_history() {
    let bench = Bench::new();
    let cases = (quotas(), starts(), traces(40));
    proptest!(config(600), |((quota, start, trace) in cases)| {
        let mut walk = Walk::new(start, tiers(&quota));
        let (mut counter, mut reference) = (bench.counter(&quota), Reference::default());
        for step in &trace {
            let deed = walk.deed(step);
            let expected = deed.apply(&mut reference);
            prop_assert_eq!(deed.apply(&mut counter), expected, "{:?}", deed);
            walk.note(&deed, expected);
        }
    });
    bench.server.assert_that_every_key_ends();
}

/// A check of cost 0 on another subject changes nothing.
#[test]
fn one_check_is_decided_as_in_a_batch() {
    let bench = Bench::new();
    let cases = (quotas(), starts(), traces(40));
    let (alice, other) = (Subject::from("alice"), Subject::from("other"));
    proptest!(config(300), |((quota, start, trace) in cases)| {
        let mut walk = Walk::new(start, tiers(&quota));
        let counter = Counter::new("rule", quota).unwrap();
        for store in &bench.stores[..2] {
            store.reset_subject(&alice).wait().unwrap();
        }
        for step in &trace {
            let deed = walk.deed(step);
            let (at, check) = (Timestamp::from_micros(deed.at), Check::new(&alice, &counter));
            let check = check.with_quota(&deed.quota).with_cost(deed.cost);
            let checks = [check, Check::new(&other, &counter).with_cost(0)];
            let batches = [&checks[..1], &checks[..]].map(|checks| Batch::new(checks).unwrap());
            let [alone, together] = [0, 1].map(|number| {
                let (store, batch) = (&bench.stores[number], &batches[number]);
                match deed.op {
                    Op::Decide => Some(store.decide(batch, at).wait().unwrap()),
                    Op::Peek => Some(store.peek(batch, at).wait().unwrap()),
                    Op::Record => Some(store.record(batch, at).wait().unwrap()),
                    Op::Refund(charged_at) => {
                        let charged_at = Timestamp::from_micros(charged_at);
                        store.refund(batch, charged_at, at).wait().unwrap();
                        None
                    }
                }
            });
            let first = |usages: Option<Usages>| usages.map(|usages| (usages.at(), usages.usages()[0]));
            let alone = first(alone);
            prop_assert_eq!(alone, first(together), "{:?}", deed);
            walk.note(&deed, alone.map(|(_, usage)| usage.into()));
        }
    });
}

/// Also between amounts so far apart that they are counted in other ticks, and with debts that
/// the smaller one's ticks cannot count.
#[test]
fn script_agrees_with_the_state_in_any_tick() {
    let bench = Bench::new();
    let factors = prop::sample::select(vec![10, 100, 1_000, 1_000_000]);
    let debts = prop_oneof![3 => Just(1), 1 => 2..=1_000_u64];
    let cases = (large_quotas(), starts(), factors, debts, traces(40));
    proptest!(config(600), |((quota, start, factor, debt, trace) in cases)| {
        let mut amounts = vec![quota];
        amounts.extend(quota.with_amount(quota.amount() / factor).ok());
        let mut walk = Walk::new(start, amounts);
        let (mut counter, mut state) = (bench.counter(&quota), Plain::new(&quota));
        for step in &trace {
            let mut deed = walk.deed(step);
            if deed.op == Op::Record {
                deed.cost = deed.cost.saturating_mul(debt);
            }
            let expected = deed.apply(&mut state);
            prop_assert_eq!(deed.apply(&mut counter), expected, "{:?}", deed);
            walk.note(&deed, expected);
        }
    });
}

/// Long enough that most of it is in chunks: thousands of charges, some of them refunded, some
/// from the middle; windows that empty all at once, and limits that change.
#[test]
fn chunked_counters_agree_with_the_state() {
    let bench = Bench::new();
    for text in [
        "700/1s, sliding-log",
        "700/1s, sliding-buckets, buckets 500",
    ] {
        let quota: Quota = text.parse().unwrap();
        let lower = quota.with_amount(300).unwrap();
        let (mut counter, mut state) = (bench.counter(&quota), Plain::new(&quota));
        let (mut random, mut now, mut charges) = (Xorshift(7), NEW_YEAR, Vec::new());
        for round in 0..4_000 {
            now += match random.below(100) {
                0 => 400_000 + random.below(800_000),
                1..=60 => random.below(1_500),
                _ => 0,
            };
            let cost = if random.below(20) == 0 {
                random.below(300)
            } else {
                1
            };
            let mut deed = Deed {
                op: Op::Decide,
                quota: if random.below(40) == 0 { lower } else { quota },
                at: now,
                cost,
            };
            match random.below(12) {
                0 => deed.op = Op::Peek,
                1 => deed.op = Op::Record,
                2 | 3 if !charges.is_empty() => {
                    let last = charges.len().saturating_sub(1);
                    let ago = usize::try_from(random.below(700)).unwrap();
                    let (at, cost) = charges[last.saturating_sub(ago)];
                    deed.op = Op::Refund(at);
                    deed.cost = cost;
                }
                _ => charges.push((now, cost)),
            }
            let expected = deed.apply(&mut state);
            assert_eq!(
                deed.apply(&mut counter),
                expected,
                "{text}, {round}: {deed:?}"
            );
        }
    }
    bench.server.assert_that_every_key_ends();
}

#[test]
fn scripts_are_exact_at_the_edge_of_what_can_be_counted() {
    let bench = Bench::new();
    for quota in extremes() {
        let (mut counter, mut state) = (bench.counter(&quota), Plain::new(&quota));
        let mut now = NEW_YEAR;
        let limit = quota.burst();
        for round in 0..6 {
            let mut free = now;
            for cost in [limit, limit - 1, 2, 1, 1, 0, limit + 1, u64::MAX] {
                let expected = state.decide(&quota, now, cost);
                let found = counter.decide(&quota, now, cost);
                assert_eq!(found, expected, "{quota}, round {round}, {cost}");
                free = expected.reset_at;
            }
            now = instants(free)[round];
        }
    }
}

/// Every cost, charged and refunded, at the first and the last instants.
#[test]
fn nothing_wraps_in_a_script() {
    let bench = Bench::new();
    let costs = [1, 1 << 32, 1 << 46, (1 << 53) - 1, u64::MAX];
    let last = Timestamp::MAX.as_micros();
    for quota in extremes() {
        for (first, second) in costs
            .iter()
            .flat_map(|first| costs.map(|second| (*first, second)))
        {
            let (mut counter, mut state) = (bench.counter(&quota), Plain::new(&quota));
            for (at, op, cost) in [
                (0, Op::Record, first),
                (1, Op::Peek, second),
                (NEW_YEAR, Op::Record, second),
                (NEW_YEAR, Op::Decide, 1),
                (NEW_YEAR + 1, Op::Refund(NEW_YEAR), first),
                (NEW_YEAR + 1, Op::Peek, 1),
                (last, Op::Record, first),
                (last, Op::Refund(NEW_YEAR), second),
                (last, Op::Decide, first),
            ] {
                let deed = Deed {
                    op,
                    quota,
                    at,
                    cost,
                };
                let expected = deed.apply(&mut state);
                let found = deed.apply(&mut counter);
                assert_eq!(found, expected, "{first}, {second}: {deed:?}");
            }
        }
    }
}
