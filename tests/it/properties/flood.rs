//! With room for few: those with nothing left keep their counter until they are free, and
//! those without one share what one of them would have.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tollgate::{Batch, Check, MemoryStore, Store, Subject, Timestamp, Usages};

use super::config;
use super::stores::{counters, gaps, len, store};
use super::traces::NEW_YEAR;
use crate::support::store_ext::StoreExt as _;

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn a_flood_frees_nobody(
        asks in vec((0..400_u64, 0..2_usize, 1..=4_u64, gaps()), 1..300),
        capacity in 4..=64_usize,
        shards in 0..2_u32,
        keys in any::<(u64, u64)>(),
    ) {
        let store = store(capacity, 1 << shards, keys);
        let counters = counters();
        let mut blocked: HashMap<(u64, usize), u64> = HashMap::new();
        let mut now = NEW_YEAR;
        for (subject, counter, cost, gap) in asks {
            now += gap;
            // Fixed windows and token buckets, by turns.
            let kind = [1, 4][counter];
            let key = Subject::from(subject);
            let check = Check::new(&key, &counters[kind]);
            let checks = [check.with_cost(cost)];
            let batch = Batch::new(&checks).expect("a valid batch");
            let at = Timestamp::from_micros(now);
            let foretold = store.peek(&batch, at).wait().expect("memory answers");
            let overflowed = store.overflowed();
            // By both ways to ask for one check.
            let usage = match cost {
                1 => store.decide_one(&checks[0], at).wait().expect("memory answers").0,
                _ => store.decide(&batch, at).wait().expect("memory answers").usages()[0],
            };
            prop_assert_eq!(foretold.is_allowed(), usage.is_allowed());
            let until = blocked.get(&(subject, kind)).copied().unwrap_or(0);
            prop_assert!(now >= until || !usage.is_allowed(), "{subject} was freed at {now}");
            let its_own = store.overflowed() == overflowed;
            if usage.is_allowed() && its_own && usage.remaining() == 0 {
                blocked.insert((subject, kind), next_permit(&store, check, at));
            }
            prop_assert!(len(&store) <= capacity + 2, "two counters may be shared");
        }
        let _ = store.sweep(Timestamp::from_micros(now + 10_000_000)).wait();
        prop_assert_eq!(len(&store), 0, "everything has expired");
    }

    /// Full of blocked counters, all newcomers together get what one of them would.
    #[test]
    fn newcomers_without_a_place_share_one_limit(
        capacity in 1..=40_usize,
        shards in 0..2_u32,
        keys in any::<(u64, u64)>(),
        costs in vec(1..=4_u64, 1..60),
    ) {
        let store = store(capacity, 1 << shards, keys);
        let counters = counters();
        let counter = &counters[1];
        let at = Timestamp::from_micros(NEW_YEAR);
        let limit = counter.quota().amount();
        // Until the first that finds no place: from then on everybody is blocked.
        let mut subjects = 0_u64..;
        while store.overflowed() == 0 {
            let key = Subject::from(subjects.next().expect("endless"));
            let verdict = decide(&store, &Check::new(&key, counter).with_cost(limit), at);
            prop_assert!(verdict.is_allowed());
        }
        let mut admitted = limit;
        for (cost, subject) in costs.into_iter().zip(subjects) {
            let key = Subject::from(subject);
            let before = store.overflowed();
            let verdict = decide(&store, &Check::new(&key, counter).with_cost(cost), at);
            // The other shard may have a place left.
            if store.overflowed() > before && verdict.is_allowed() {
                admitted += cost;
            }
        }
        prop_assert!(admitted <= limit, "{admitted} of {limit}");
        prop_assert_eq!(store.evicted(), 0);
    }
}

fn decide(store: &MemoryStore, check: &Check<'_>, now: Timestamp) -> Usages {
    let checks = [*check];
    let batch = Batch::new(&checks).expect("a valid batch");
    store.decide(&batch, now).wait().expect("memory answers")
}

/// When somebody with nothing left has a permit again.
fn next_permit(store: &MemoryStore, check: Check<'_>, now: Timestamp) -> u64 {
    let checks = [check.with_cost(1)];
    let batch = Batch::new(&checks).expect("a valid batch");
    let stands = store.peek(&batch, now).wait().expect("memory answers");
    stands.usages()[0].reset_at().as_micros()
}
