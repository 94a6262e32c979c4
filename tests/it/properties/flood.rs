//! A store that is full: which counters it keeps, and when it uses overflow counters.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tollgate::{Batch, Check, Counter, MemoryStore, Store, Subject, Timestamp, Usage};

use super::config;
use super::stores::{counters, gaps, len, store};
use super::traces::NEW_YEAR;
use crate::support::store_ext::StoreExt as _;

/// Limits on both sides of the bounds that protection has, for each algorithm.
const MIXED: [&str; 10] = [
    "1/hour",
    "3/hour, token-bucket",
    "10/hour, fixed-window",
    "150/hour",
    "200/hour, sliding-log",
    "201/hour, token-bucket",
    "500/day, fixed-window",
    "700/hour, sliding-buckets, buckets 4",
    "900/hour, token-bucket, burst 800",
    "2000/hour, sliding-log",
];

/// Cost of each request of the rules in [`MIXED`], where requests have equal costs.
const COSTS: [u64; 10] = [1, 1, 4, 1, 2, 1, 3, 1, 1, 5];

fn mixed_counters() -> Vec<Counter> {
    let counter = |(number, text): (usize, &&str)| {
        let quota = text.parse().expect("a valid quota");
        Counter::new(&format!("rule-{number}"), quota).expect("a valid name")
    };
    MIXED.iter().enumerate().map(counter).collect()
}

fn decide(store: &MemoryStore, check: Check<'_>, now: Timestamp) -> Usage {
    let usages = store.decide_one(&check, now).wait();
    usages.expect("memory answers").0
}

fn peek(store: &MemoryStore, check: Check<'_>, now: Timestamp) -> Usage {
    let checks = [check];
    let batch = Batch::new(&checks).expect("a valid batch");
    store
        .peek(&batch, now)
        .wait()
        .expect("memory answers")
        .usages()[0]
}

/// Returns how many requests of this cost it takes to protect a counter, as documented on
/// [`MemoryStore`].
fn requests_to_protect(limit: u64, cost: u64) -> u64 {
    let is_protected = |requests: u64| {
        let used = requests * cost;
        used >= limit || requests >= 2 && (requests >= 8 || used * 100 >= limit)
    };
    (1..=8)
        .find(|requests| is_protected(*requests))
        .expect("8 are enough")
}

#[test]
fn documented_number_of_requests_protects_a_counter() {
    let expected = [(1, 1), (2, 2), (200, 2), (201, 3), (700, 7), (701, 8)];
    for (limit, requests) in expected {
        assert_eq!(requests_to_protect(limit, 1), requests, "limit {limit}");
    }
}

proptest! {
    #![proptest_config(config(2_000))]

    /// Counters that are used up deny until their reset, however many other keys there are. A peek
    /// has the outcome of the decision that follows.
    #[test]
    fn flood_frees_no_blocked_counter(
        requests in vec((0..400_u64, 0..5_usize, 1..=4_u64, gaps()), 1..300),
        capacity in 4..=64_usize,
        shards in 0..2_u32,
        keys in any::<(u64, u64)>(),
    ) {
        let store = store(capacity, 1 << shards, keys);
        let counters = counters();
        let mut blocked: HashMap<(u64, usize), u64> = HashMap::new();
        let mut now = NEW_YEAR;
        for (subject, counter, cost, gap) in requests {
            now += gap;
            let key = Subject::from(subject);
            let check = Check::new(&key, &counters[counter]);
            let at = Timestamp::from_micros(now);
            let foretold = peek(&store, check.with_cost(cost), at);
            let overflowed = store.overflowed();
            let usage = decide(&store, check.with_cost(cost), at);
            prop_assert_eq!(foretold.outcome(), usage.outcome());
            let until = blocked.get(&(subject, counter)).copied().unwrap_or(0);
            prop_assert!(now >= until || !usage.is_allowed(), "{subject} was freed at {now}");
            let has_own = store.overflowed() == overflowed;
            if usage.is_allowed() && has_own && usage.remaining() == 0 {
                let reset_at = peek(&store, check, at).reset_at();
                blocked.insert((subject, counter), reset_at.as_micros());
            }
            // One overflow counter for each quota and shard.
            prop_assert!(len(&store) <= capacity + (counters.len() << shards));
        }
        let _ = store.sweep(Timestamp::from_micros(now + 10_000_000)).wait();
        prop_assert_eq!(len(&store), 0, "everything has expired");
    }

    /// If all counters are blocked, all new keys of a shard together get one limit.
    #[test]
    fn overflow_admits_one_limit_per_shard(
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
        let mut subjects = 0_u64..;
        let mut admitted = 0;
        while store.overflowed() == 0 {
            let key = Subject::from(subjects.next().expect("endless"));
            let usage = decide(&store, Check::new(&key, counter).with_cost(limit), at);
            prop_assert!(usage.is_allowed());
        }
        admitted += limit;
        for (cost, subject) in costs.into_iter().zip(subjects) {
            let key = Subject::from(subject);
            let before = store.overflowed();
            let usage = decide(&store, Check::new(&key, counter).with_cost(cost), at);
            if store.overflowed() > before && usage.is_allowed() {
                admitted += cost;
            }
        }
        prop_assert!(admitted <= limit << shards, "{admitted} of {limit}");
        prop_assert_eq!(store.evicted(), 0);
    }

    /// A counter is never displaced after a denial, or after a charge that protects it, whatever the
    /// rules, costs and algorithms of the other counters are.
    #[test]
    fn protected_counters_are_kept(
        requests in vec((0..60_u64, 0..MIXED.len(), prop_oneof![3 => Just(1), 1 => 1..=900_u64]), 1..600),
        capacity in 1..=40_usize,
        shards in 0..2_u32,
        keys in any::<(u64, u64)>(),
    ) {
        let store = store(capacity, 1 << shards, keys);
        let counters = mixed_counters();
        let at = Timestamp::from_micros(NEW_YEAR);
        let mut kept: HashMap<(u64, usize), u64> = HashMap::new();
        for (subject, rule, cost) in requests {
            let key = Subject::from(subject);
            let check = Check::new(&key, &counters[rule]);
            let overflowed = store.overflowed();
            let usage = decide(&store, check.with_cost(cost), at);
            if store.overflowed() > overflowed {
                prop_assert!(!kept.contains_key(&(subject, rule)));
                continue;
            }
            let (used, limit) = (usage.used(), usage.limit());
            let is_protected = if usage.is_allowed() {
                used >= limit || used >= 2 * cost && (used >= 8 * cost || used * 100 >= limit)
            } else {
                // A denied new key has no counter.
                used > 0
            };
            if is_protected || kept.contains_key(&(subject, rule)) {
                kept.insert((subject, rule), used);
            }
        }
        for ((subject, rule), used) in kept {
            let key = Subject::from(subject);
            let found = peek(&store, Check::new(&key, &counters[rule]), at);
            prop_assert_eq!(found.used(), used, "{} of {}", subject, MIXED[rule]);
        }
    }

    /// A check uses an overflow counter only after as many counters as there is capacity have received
    /// the documented number of requests.
    #[test]
    fn overflow_takes_the_documented_number_of_requests(
        requests in vec((0..60_u64, 0..MIXED.len(), 1..=900_u64), 1..800),
        has_equal_costs in any::<bool>(),
        capacity in 1..=40_usize,
        keys in any::<(u64, u64)>(),
    ) {
        let store = store(capacity, 1, keys);
        let counters = mixed_counters();
        let at = Timestamp::from_micros(NEW_YEAR);
        // For each counter, the number of requests and the highest cost.
        let mut sent: HashMap<(u64, usize), (u64, u64)> = HashMap::new();
        for (subject, rule, cost) in requests {
            let cost = if has_equal_costs { COSTS[rule] } else { cost };
            let key = Subject::from(subject);
            let overflowed = store.overflowed();
            let _ = decide(&store, Check::new(&key, &counters[rule]).with_cost(cost), at);
            if store.overflowed() > overflowed {
                let may_be_protected = |((_, rule), (requests, cost)): (&(u64, usize), &(u64, u64))| {
                    let limit = counters[*rule].quota().burst();
                    let needed = if has_equal_costs || *cost >= limit {
                        requests_to_protect(limit, *cost)
                    } else {
                        2
                    };
                    *requests >= needed
                };
                let protected = sent.iter().filter(|sent| may_be_protected(*sent)).count();
                prop_assert!(protected >= capacity, "{protected} of {capacity}");
            }
            let (count, highest) = sent.entry((subject, rule)).or_default();
            *count += 1;
            *highest = cost.max(*highest);
        }
    }
}
