//! A memory store returns the same usages as the states that it packs, and writes only charges.

use proptest::collection::vec;
use proptest::prelude::*;
use tollgate::{Algorithm, Batch, Check, Counter, MemoryStore, Store, Subject, Timestamp, Usages};

use super::config;
use super::counters::{Counts, Op, Plain, Stored};
use super::quotas::{quotas, tiers};
use super::stores::{QUOTAS, counters, gaps, len, merged, store};
use super::traces::{NEW_YEAR, Walk, starts, traces};
use crate::reference::Reference;
use crate::support::store_ext::StoreExt as _;

proptest! {
    #![proptest_config(config(10_000))]

    /// With sweeps in between, and a clock that sometimes goes back.
    #[test]
    fn packing_sweeping_and_clocks_that_go_back_lose_nothing(
        quota in quotas(),
        start in starts(),
        trace in traces(40),
        meanwhile in vec((any::<bool>(), prop_oneof![3 => Just(0), 1 => 0..u64::MAX]), 40),
    ) {
        // A token bucket expires by the amount of its last charge.
        let quotas = match quota.algorithm() {
            Algorithm::TokenBucket => vec![quota],
            _ => tiers(&quota),
        };
        let mut walk = Walk::new(start, quotas);
        let mut stored = Stored::new(&quota);
        let (mut plain, mut reference) = (Plain::new(&quota), Reference::default());
        for (step, (swept, back)) in trace.iter().zip(meanwhile) {
            let mut deed = walk.deed(step);
            deed.at -= back % (deed.at + 1);
            let expected = deed.apply(&mut reference);
            prop_assert_eq!(deed.apply(&mut stored), expected, "{:?}", deed);
            prop_assert_eq!(deed.apply(&mut plain), expected, "{:?}", deed);
            walk.note(&deed, expected);
            // A peek does not move the clock; sweeping does.
            if swept && deed.op != Op::Peek {
                stored.sweep(deed.at);
            }
        }
    }

    /// The packed state does not depend on the amount.
    #[test]
    fn packing_keeps_the_count_when_the_amount_changes(
        quota in quotas(),
        start in starts(),
        trace in traces(40),
    ) {
        let mut walk = Walk::new(start, tiers(&quota));
        let (mut stored, mut plain) = (Stored::new(&quota), Plain::new(&quota));
        for step in &trace {
            let deed = walk.deed(step);
            let expected = deed.apply(&mut plain);
            prop_assert_eq!(deed.apply(&mut stored), expected, "{:?}", deed);
            walk.note(&deed, expected);
        }
    }

    #[test]
    fn a_peek_changes_nothing(quota in quotas(), start in starts(), trace in traces(30)) {
        let mut walk = Walk::new(start, tiers(&quota));
        let (mut requested, mut left_alone) = (Stored::new(&quota), Stored::new(&quota));
        for step in &trace {
            let deed = walk.deed(step);
            for cost in [0, 1, deed.cost, u64::MAX] {
                let first = requested.peek(&deed.quota, deed.at, cost);
                prop_assert_eq!(requested.peek(&deed.quota, deed.at, cost), first);
            }
            let result = deed.apply(&mut requested);
            prop_assert_eq!(deed.apply(&mut left_alone), result, "{:?}", deed);
            walk.note(&deed, result);
        }
    }

    /// One store receives batches that are denied, its twin does not. Both have the same usages.
    #[test]
    fn a_denied_batch_never_happened(
        keys in any::<(u64, u64)>(),
        requests in vec((vec((0..3_usize, 0..QUOTAS.len(), 0..4_u64), 1..=6), gaps()), 1..40),
    ) {
        let counters = counters();
        let subjects = ["alice", "bob", "carol"].map(Subject::from);
        let (store, twin) = (store(64, 1, keys), store(64, 1, keys));
        let mut now = NEW_YEAR;
        for (checks, gap) in &requests {
            now += gap;
            let at = Timestamp::from_micros(now);
            let checks: Vec<Check<'_>> = merged(checks)
                .into_iter()
                .map(|(subject, counter, cost)| {
                    Check::new(&subjects[subject], &counters[counter]).with_cost(cost)
                })
                .collect();
            let batch = Batch::new(&checks).expect("a valid batch");
            let before = everything(&store, &subjects, &counters, at);
            let peeked = store.peek(&batch, at).wait().expect("memory answers");
            let usages = store.decide(&batch, at).wait().expect("memory answers");
            prop_assert_eq!(peeked.is_allowed(), usages.is_allowed());
            if usages.is_allowed() {
                prop_assert_eq!(twin.decide(&batch, at).wait().expect("memory answers"), usages);
            } else {
                prop_assert_eq!(usages, peeked, "a denial has the usages of a peek");
                prop_assert_eq!(everything(&store, &subjects, &counters, at), before);
            }
            prop_assert_eq!(
                everything(&twin, &subjects, &counters, at),
                everything(&store, &subjects, &counters, at)
            );
        }
        // One of the stores may have swept expired counters earlier.
        let kept = [store, twin].map(|store| {
            let swept = store.sweep(Timestamp::from_micros(now)).wait();
            swept.map(|_| len(&store)).expect("memory answers")
        });
        prop_assert_eq!(kept[0], kept[1]);
    }
}

/// Returns the usages of all counters of all subjects.
fn everything(
    store: &MemoryStore,
    subjects: &[Subject<'_>],
    counters: &[Counter],
    now: Timestamp,
) -> Vec<Usages> {
    let stands = |subject| {
        let checks: Vec<Check<'_>> = counters
            .iter()
            .map(|counter| Check::new(subject, counter))
            .collect();
        let batch = Batch::new(&checks).expect("a valid batch");
        store.peek(&batch, now).wait().expect("memory answers")
    };
    subjects.iter().map(stands).collect()
}
