//! Leases: number of store calls, and that no credit is lost or spent twice.

use std::sync::Arc;
use std::time::Duration;

use tollgate::store::Leased;
use tollgate::{Algorithm, Batch, Check, Counter, MemoryStore, Store, StoreFuture, Subject};

use super::{START, at, counter, take, user};
use crate::support::error_paths;
use crate::support::scripted_store::{Script, ScriptedStore};
use crate::support::store_ext::StoreExt as _;

const HOLD: u64 = 250_000;

type Reset<'a> = &'a dyn Fn(&Leased) -> StoreFuture<()>;

fn leased(inner: &ScriptedStore, block: u64) -> Leased {
    Leased::builder(inner.clone())
        .block_size(block)
        .build()
        .unwrap()
}

fn used(store: &dyn Store, subject: &Subject<'_>, counter: &Counter, now: u64) -> u64 {
    let checks = [Check::new(subject, counter)];
    let usages = store.peek(&Batch::new(&checks).unwrap(), at(now)).wait();
    usages.unwrap().usages()[0].used()
}

#[test]
fn a_frequent_request_needs_one_call_per_block() {
    for quota in [
        "1000000/hour, fixed-window",
        "1000000/hour",
        "1000000/hour, sliding-buckets",
    ] {
        let inner = ScriptedStore::default();
        let store = leased(&inner, 100);
        let (alice, counter) = (user("alice"), counter("hot", quota));
        for number in 1..=10_000 {
            let usage = take(&store, Check::new(&alice, &counter), START + number);
            assert_eq!(
                (usage.is_allowed(), usage.used()),
                (true, number),
                "{quota}"
            );
        }
        let calls = inner.decisions();
        assert!((90..=110).contains(&calls), "{calls} calls, {quota}");
    }
}

/// One request with two subjects and two windows, charged in multiples.
#[test]
fn a_batch_is_leased_as_a_whole() {
    let inner = ScriptedStore::default();
    let store = leased(&inner, 50);
    let (alice, acme) = (user("alice"), Subject::from([("tenant", "acme")]));
    let (mine, ours) = (
        counter("mine", "10000/hour"),
        counter("ours", "5000/minute"),
    );
    let checks = [
        Check::new(&alice, &mine),
        Check::new(&acme, &ours).with_cost(2),
    ];
    let batch = Batch::new(&checks).unwrap();
    for number in 1..=1_000 {
        let usages = store.decide(&batch, at(START)).wait().unwrap();
        assert!(usages.is_allowed());
        let used: Vec<u64> = usages.usages().iter().map(tollgate::Usage::used).collect();
        assert_eq!(used, [number, 2 * number]);
    }
    assert!(inner.decisions() <= 36, "{}", inner.decisions());
}

/// These algorithms store the instant of each charge.
#[test]
fn token_buckets_and_logs_are_not_leased() {
    let (alice, plain) = (user("alice"), counter("plain", "1000/hour"));
    for quota in ["1000/hour, token-bucket", "1000/hour, sliding-log"] {
        let inner = ScriptedStore::default();
        let store = leased(&inner, 100);
        let counter = counter("rule", quota);
        for _ in 0..50 {
            take(&store, Check::new(&alice, &counter), START);
        }
        assert_eq!(inner.decisions(), 50);
        let checks = [Check::new(&alice, &plain), Check::new(&alice, &counter)];
        let batch = Batch::new(&checks).unwrap();
        for _ in 0..50 {
            let _ = store.decide(&batch, at(START)).wait().unwrap();
        }
        assert_eq!(inner.decisions(), 100);
    }
}

/// Credits of one window are not spent in the next.
#[test]
fn a_lease_ends_with_its_window() {
    for (quota, end) in [
        ("1000/1m, fixed-window", START + 60_000_000),
        ("1000/1m", START + 60_000_000),
        ("1000/1m, sliding-buckets", START + 1_000_000),
    ] {
        let inner = ScriptedStore::default();
        let store = leased(&inner, 64);
        let (alice, counter) = (user("alice"), counter("rule", quota));
        let check = Check::new(&alice, &counter);
        // Takes until a request charges the next block.
        let (mut taken, mut before) = (0, 0);
        while taken < 40 || inner.decisions() == before {
            before = inner.decisions();
            take(&store, check, end - 2);
            taken += 1;
        }
        let before = inner.decisions();
        take(&store, check, end - 1);
        assert_eq!(inner.decisions(), before, "leased: {quota}");
        take(&store, check, end);
        assert_eq!(inner.decisions(), before + 1, "expired: {quota}");
        // Unspent credits were refunded, including those of the previous window.
        store.close().wait().unwrap();
        let expected = match counter.quota().algorithm() {
            Algorithm::FixedWindow => 1,
            // In its first tick, a sliding window has dropped a fraction of the previous one.
            Algorithm::SlidingWindow => taken + 1,
            _ => taken + 2,
        };
        assert_eq!(used(&inner, &alice, &counter, end), expected, "{quota}");
    }
}

#[test]
fn unspent_credits_are_refunded() {
    let (alice, bob) = (user("alice"), user("bob"));
    let hour = counter("rule", "1000/hour, fixed-window");
    let endings: [(&str, &dyn Fn(Leased)); 4] = [
        ("closed", &|store| store.close().wait().unwrap()),
        ("dropped", &|store| drop(store)),
        ("expired, and another request", &|store| {
            take(&store, Check::new(&bob, &hour), START + HOLD);
        }),
        ("expired, and swept", &|store| {
            store.sweep(at(START + HOLD));
        }),
    ];
    for (how, end) in endings {
        let inner = ScriptedStore::default();
        let store = leased(&inner, 64);
        for _ in 0..20 {
            take(&store, Check::new(&alice, &hour), START);
        }
        assert!(
            used(&inner, &alice, &hour, START) > 20,
            "no credits are leased"
        );
        end(store);
        assert_eq!(used(&inner, &alice, &hour, START + HOLD), 20, "{how}");
    }
}

#[test]
fn a_closed_store_leases_nothing() {
    let inner = ScriptedStore::default();
    let store = leased(&inner, 64);
    let (alice, hour) = (user("alice"), counter("rule", "1000/hour"));
    store.close().wait().unwrap();
    for _ in 0..50 {
        take(&store, Check::new(&alice, &hour), START);
    }
    assert_eq!(inner.decisions(), 50);
    assert_eq!(used(&inner, &alice, &hour, START), 50);
}

/// Credits from before a reset are not spent on top of the new limit.
#[test]
fn a_reset_invalidates_leases() {
    let (alice, hour) = (user("alice"), counter("rule", "100/hour, fixed-window"));
    let check = Check::new(&alice, &hour);
    let checks = [check];
    let batch = Batch::new(&checks).unwrap();
    let resets: [Reset<'_>; 3] = [
        &|store| store.reset(&batch),
        &|store| store.reset_subject(&alice),
        &|store| store.clear(),
    ];
    for reset in resets {
        let store = leased(&ScriptedStore::default(), 64);
        for _ in 0..20 {
            take(&store, check, START);
        }
        reset(&store).wait().unwrap();
        let admitted = (0..300).filter(|_| take(&store, check, START).is_allowed());
        assert_eq!(admitted.count(), 100);
    }
}

#[test]
fn a_lower_limit_applies_at_once() {
    let store = leased(&ScriptedStore::default(), 64);
    let (alice, hour) = (user("alice"), counter("rule", "1000/hour"));
    let check = Check::new(&alice, &hour);
    for _ in 0..40 {
        assert!(take(&store, check, START).is_allowed());
    }
    let lower = hour.quota().with_amount(40).unwrap();
    assert!(!take(&store, check.with_quota(&lower), START).is_allowed());
}

/// Four processes share a limit. They never admit more, and at first at most two blocks less each.
#[test]
fn a_fleet_admits_the_limit_after_leases_expire() {
    const LIMIT: u64 = 1_000;
    const BLOCK: u64 = 32;
    for quota in [
        "1000/hour, fixed-window",
        "1000/hour",
        "1000/hour, sliding-buckets",
    ] {
        let inner = ScriptedStore::default();
        let fleet = [(); 4].map(|()| leased(&inner, BLOCK));
        let (alice, counter) = (user("alice"), counter("rule", quota));
        let check = Check::new(&alice, &counter);
        let mut admitted = 0;
        for round in 0..2_000_u64 {
            // Some processes send requests more often.
            for (index, store) in fleet.iter().enumerate() {
                if round % (index as u64 + 1) == 0 {
                    admitted += u64::from(take(store, check, START).is_allowed());
                }
            }
        }
        assert!(admitted <= LIMIT, "{admitted}, {quota}");
        assert!(admitted >= LIMIT - 4 * 2 * BLOCK, "{admitted}, {quota}");
        for store in &fleet {
            store.sweep(at(START + HOLD));
        }
        for _ in 0..200 {
            for store in &fleet {
                admitted += u64::from(take(store, check, START + HOLD).is_allowed());
            }
        }
        assert_eq!(admitted, LIMIT, "{quota}");
    }
}

/// 64 tasks send the same request and share its blocks. Every seventh task is cancelled while it waits.
/// No other task is left waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_share_blocks() {
    let inner = ScriptedStore::new(Script::ReplyAfter(1));
    let leased = Leased::builder(inner.clone())
        .block_size(100)
        .build()
        .unwrap();
    let store = Arc::new(leased);
    let tasks: Vec<_> = (0..64)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let (alice, hour) = (user("alice"), counter("rule", "10000/hour, fixed-window"));
                let check = Check::new(&alice, &hour);
                let mut admitted = 0_u64;
                for turn in 0..200 {
                    let answer = store.decide_one(&check, at(START));
                    if number % 7 == 0 && turn % 2 == 0 {
                        let patience = Duration::ZERO;
                        let answer = tokio::time::timeout(patience, answer).await;
                        admitted +=
                            u64::from(answer.is_ok_and(|answer| answer.unwrap().0.is_allowed()));
                    } else {
                        admitted += u64::from(answer.await.unwrap().0.is_allowed());
                    }
                }
                admitted
            })
        })
        .collect();
    let mut admitted = 0;
    for task in tasks {
        admitted += task.await.unwrap();
    }
    assert!(admitted <= 10_000, "{admitted}");
    // Blocks have 100 credits. Near the limit, requests are counted one by one.
    let calls = inner.decisions();
    assert!(calls < 64 * 200 / 2, "{calls} calls for {admitted}");
    store.close().await.unwrap();
    let (alice, hour) = (user("alice"), counter("rule", "10000/hour, fixed-window"));
    assert!(used(&inner, &alice, &hour, START) >= admitted);
}

#[test]
fn errors_of_the_store_are_returned_until_it_recovers() {
    let inner = ScriptedStore::default();
    let store = Leased::builder(inner.clone())
        .block_size(4)
        .build()
        .unwrap();
    let (alice, hour) = (user("alice"), counter("rule", "1000/hour"));
    let check = Check::new(&alice, &hour);
    for _ in 0..20 {
        take(&store, check, START);
    }
    inner.follow(Script::Unavailable);
    let failed = (0..20).filter(|_| store.decide_one(&check, at(START)).wait().is_err());
    assert!(failed.count() >= 12, "more than two blocks were leased");
    inner.follow(Script::Reply);
    assert!(take(&store, check, START).is_allowed());
}

#[test]
fn invalid_settings_are_rejected() {
    let new = || Leased::builder(MemoryStore::new());
    for block_size in [0, 1_000_001] {
        let builder = new().block_size(block_size).capacity(0);
        let errors = builder.max_ttl(Duration::ZERO).build().unwrap_err();
        assert_eq!(error_paths(&errors), ["block_size", "max_ttl", "capacity"]);
    }
}
