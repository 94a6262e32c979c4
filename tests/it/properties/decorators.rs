//! Store decorators change no decision, or only in the documented direction.

use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use tollgate::algorithm::State;
use tollgate::store::{DenyCache, Leased};
use tollgate::{Algorithm, Batch, Check, Counter, MemoryStore, Store, Subject, Timestamp, Usages};

use super::config;
use super::stores::{QUOTAS, counters, gaps, merged, store};
use super::traces::NEW_YEAR;
use crate::support::store_ext::StoreExt as _;

/// An operation on a store.
#[derive(Clone, Debug)]
enum Deed {
    Decide,
    Record,
    /// Refunds the request that was admitted this many requests ago.
    Refund(usize),
    Reset,
    ResetSubject,
    Clear,
}

fn deeds() -> impl Strategy<Value = Deed> {
    prop_oneof![
        16 => Just(Deed::Decide),
        1 => Just(Deed::Record),
        2 => (0..3_usize).prop_map(Deed::Refund),
        1 => Just(Deed::Reset),
        1 => Just(Deed::ResetSubject),
        1 => Just(Deed::Clear),
    ]
}

/// Subject, counter and cost of each check.
type RequestedChecks = Vec<(usize, usize, u64)>;

fn with_batch<T>(
    requested: &RequestedChecks,
    counters: &[Counter],
    larger: bool,
    call: impl FnOnce(&Batch<'_>) -> T,
) -> T {
    let subjects = ["alice", "bob"].map(Subject::from);
    let quotas: Vec<_> = counters
        .iter()
        .map(|counter| {
            // A token bucket is swept by the amount it was last charged under, and the twins are
            // not swept at the same time.
            let is_bucket = counter.quota().algorithm() == Algorithm::TokenBucket;
            let amount = counter.quota().amount() + u64::from(larger && !is_bucket);
            counter.quota().with_amount(amount).expect("small")
        })
        .collect();
    let checks: Vec<Check<'_>> = merged(requested)
        .into_iter()
        .map(|(subject, counter, cost)| {
            Check::new(&subjects[subject], &counters[counter])
                .with_quota(&quotas[counter])
                .with_cost(cost)
        })
        .collect();
    call(&Batch::new(&checks).expect("a valid batch"))
}

/// Returns outcome, limit and reset of each check that denies.
fn result(usages: &Usages) -> Vec<(tollgate::Outcome, u64, Timestamp)> {
    let denied = usages.usages().iter().filter(|usage| !usage.is_allowed());
    denied
        .map(|usage| (usage.outcome(), usage.limit(), usage.reset_at()))
        .collect()
}

proptest! {
    #![proptest_config(config(2_000))]

    /// Two equal stores, one behind a cache: both deny the same requests.
    #[test]
    fn deny_cache_denies_the_same_requests_as_its_store(
        keys in any::<(u64, u64)>(),
        trace in vec(
            (
                deeds(),
                vec((0..2_usize, 0..QUOTAS.len(), 0..4_u64), 1..=3),
                gaps(),
                prop::bool::weighted(0.1),
            ),
            1..60,
        ),
    ) {
        let counters = counters();
        let (plain, inner) = (store(64, 1, keys), store(64, 1, keys));
        let cached = DenyCache::new(inner);
        let mut now = NEW_YEAR;
        let mut admitted: Vec<(RequestedChecks, bool, Timestamp)> = Vec::new();
        for (deed, requested, gap, larger) in &trace {
            now += gap;
            let at = Timestamp::from_micros(now);
            let twins: [&dyn Store; 2] = [&plain, &cached];
            match deed {
                Deed::Decide => {
                    let [one, other] = twins.map(|store| {
                        with_batch(requested, &counters, *larger, |batch| {
                            store.decide(batch, at).wait().unwrap()
                        })
                    });
                    prop_assert_eq!(one.is_allowed(), other.is_allowed());
                    prop_assert_eq!(result(&one), result(&other));
                    prop_assert_eq!(one.at(), other.at());
                    if one.is_allowed() {
                        prop_assert_eq!(&one, &other);
                        admitted.push((requested.clone(), *larger, at));
                    }
                }
                Deed::Record => for store in twins {
                    with_batch(requested, &counters, *larger, |batch| {
                        let _ = store.record(batch, at).wait().unwrap();
                    });
                },
                Deed::Refund(ago) => if let Some((requested, larger, charged)) =
                    admitted.iter().rev().nth(*ago)
                {
                    for store in twins {
                        with_batch(requested, &counters, *larger, |batch| {
                            store.refund(batch, *charged, at).wait().unwrap();
                        });
                    }
                },
                Deed::Reset => for store in twins {
                    with_batch(requested, &counters, *larger, |batch| {
                        store.reset(batch).wait().unwrap();
                    });
                },
                Deed::ResetSubject => for store in twins {
                    store.reset_subject(&Subject::from("alice")).wait().unwrap();
                },
                Deed::Clear => for store in twins {
                    store.clear().wait().unwrap();
                },
            }
        }
    }

    /// Three processes take blocks from one store. Whatever they admit, the algorithm would have
    /// admitted at that instant, had it been requested one by one: so all of its bounds hold.
    #[test]
    fn leases_admit_nothing_that_would_not_be_admitted_one_by_one(
        block in 2..12_u64,
        requests in vec(
            (0..3_usize, vec((0..LEASED.len(), 1..3_u64), 1..=2), leased_gaps(), 0..20_u8),
            1..200,
        ),
    ) {
        let counters: Vec<Counter> = LEASED
            .iter()
            .map(|text| Counter::new("rule", text.parse().unwrap()).unwrap())
            .collect();
        let store = Arc::new(MemoryStore::new());
        let processes = [(); 3].map(|()| {
            let leased = Leased::builder(Arc::clone(&store)).block_size(block);
            leased.max_ttl(Duration::from_millis(400)).build().unwrap()
        });
        let mut states: Vec<State> = counters
            .iter()
            .map(|counter| State::fresh(counter.quota()))
            .collect();
        let mut now = NEW_YEAR;
        for (process, requested, gap, also) in &requests {
            now += gap;
            let at = Timestamp::from_micros(now);
            let process = &processes[*process];
            match also {
                0 => process.close().wait().unwrap(),
                1 => process.sweep(at),
                _ => {}
            }
            let requested: RequestedChecks = requested.iter().map(|(counter, cost)| (0, *counter, *cost)).collect();
            let requested = merged(&requested);
            let usages = with_batch(&requested, &counters, false, |batch| {
                process.decide(batch, at).wait().unwrap()
            });
            prop_assert_eq!(usages.at(), at);
            if !usages.is_allowed() {
                continue;
            }
            for (_, counter, cost) in &requested {
                let quota = counters[*counter].quota();
                let usage = states[*counter].assess(quota, at, *cost);
                prop_assert!(usage.is_allowed(), "{quota} at {now}: {usage:?}");
                states[*counter].charge(quota, at, *cost);
            }
        }
    }
}

const LEASED: [&str; 5] = [
    "40/1s, fixed-window",
    "60/1s",
    "50/1s, sliding-buckets, buckets 4",
    "50/1s, token-bucket, burst 30",
    "40/1s, sliding-log",
];

/// Mostly close together, and often around the ends of windows and buckets.
fn leased_gaps() -> impl Strategy<Value = u64> {
    prop_oneof![
        12 => 0..3_000_u64,
        2 => 3_000..200_000_u64,
        1 => prop::sample::select(vec![249_999, 250_000, 400_000, 999_999, 1_000_000]),
    ]
}
