//! Keys in Redis: names, expiry, and keys that another application has written.

use std::collections::HashSet;
use std::time::Duration;

use tollgate::{Batch, Check, Outcome, Store as _, Subject, Timestamp, Usage};

use super::{Server, counter, look, take, take_at, user};
pub(super) use crate::support::clock::NEW_YEAR;
use crate::support::store_ext::StoreExt as _;

pub(super) const FIVE: [&str; 5] = [
    "5/hour, sliding-window",
    "5/hour, fixed-window",
    "5/hour, sliding-buckets",
    "5/hour, sliding-log",
    "5/hour, token-bucket",
];
/// Quotas for tests that use the clock of the server. A day rarely ends during a test.
const FIVE_A_DAY: [&str; 5] = [
    "5/day, sliding-window",
    "5/day, fixed-window",
    "5/day, sliding-buckets",
    "5/day, sliding-log",
    "5/day, token-bucket",
];

pub(super) fn later(seconds: u64) -> Timestamp {
    NEW_YEAR.saturating_add(Duration::from_secs(seconds))
}

/// Returns the keys of subjects, without those of their logs.
pub(super) fn subject_keys(server: &Server) -> Vec<String> {
    let mut keys = server.keys();
    keys.retain(|key| key.ends_with('}'));
    keys
}

/// Returns the keys of logs.
pub(super) fn log_keys(server: &Server) -> Vec<String> {
    let mut keys = server.keys();
    keys.retain(|key| !key.ends_with('}'));
    keys
}

#[tokio::test]
async fn subject_has_one_key_and_one_per_log_all_of_fixed_length() {
    let server = Server::start();
    let store = server.store().prefix("shop").build().unwrap();
    let names = ["", "alice", "{}*\r\n", &"x".repeat(10_000)];
    let mut subjects: Vec<Subject<'_>> = names.map(user).to_vec();
    subjects.extend([Subject::all(), Subject::from(7), Subject::from(("a", "b"))]);
    for subject in &subjects {
        let counters = FIVE.map(|text| counter("rule", text));
        let checks = counters
            .each_ref()
            .map(|counter| Check::new(subject, counter));
        let batch = Batch::new(&checks).unwrap();
        assert!(store.decide(&batch, NEW_YEAR).await.unwrap().is_allowed());
    }
    let keys = subject_keys(&server);
    assert_eq!(keys.len(), subjects.len());
    for key in &keys {
        let tag = key
            .strip_prefix("shop:v2:{")
            .and_then(|rest| rest.strip_suffix('}'));
        let tag = tag.unwrap_or_else(|| panic!("{key}"));
        assert_eq!(tag.len(), 22);
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        assert!(tag.bytes().all(is_base64), "{key}");
        // A fixed window, a sliding window, a token bucket and the records of two logs.
        let size = server.run::<usize>(&["STRLEN", key]);
        assert_eq!(size, 24 + 25 + 31 + 2 * 24);
        let logs = log_keys(&server);
        let mut logs = logs.iter().filter(|log| log.starts_with(key.as_str()));
        assert!(logs.by_ref().all(|log| log.len() == key.len() + 11));
    }
    assert_eq!(log_keys(&server).len(), 2 * subjects.len());
    server.assert_that_every_key_ends();
}

#[tokio::test]
async fn applications_with_different_prefixes_share_no_keys() {
    let server = Server::start();
    let stores = ["one", "two"].map(|prefix| server.store().prefix(prefix).build().unwrap());
    let (alice, once) = (user("alice"), counter("once", "1/day"));
    for store in &stores {
        assert!(take(store, &alice, &once).await.unwrap().is_allowed());
        assert_eq!(store.len().await.unwrap(), 1);
    }
    stores[0].clear().await.unwrap();
    assert_eq!(look(&stores[0], &alice, &once).await.used(), 0);
    assert_eq!(look(&stores[1], &alice, &once).await.used(), 1);
}

/// A key expires shortly after its last counter. A shorter counter does not shorten its expiry.
#[tokio::test]
async fn key_expires_after_its_last_counter() {
    let server = Server::start();
    let store = server.store().build().unwrap();
    let alice = user("alice");
    for (quota, at_least, at_most) in [
        ("9/10s, token-bucket", 1, 2),
        ("9/10s, sliding-log", 9, 12),
        ("9/10s, sliding-buckets", 9, 12),
        ("9/day", 86_000, 2 * 86_400 + 2),
        ("9/minute, fixed-window", 86_000, 2 * 86_400 + 2),
        ("9/3653d, sliding-log", 315_600_000, 315_700_000),
        ("9/s", 315_600_000, 315_700_000),
    ] {
        let usage = take(&store, &alice, &counter("rule", quota)).await.unwrap();
        assert!(usage.is_allowed());
        let left: i64 = server.run(&["PTTL", &subject_keys(&server)[0]]);
        let seconds = left / 1_000;
        assert!(
            (at_least..=at_most).contains(&seconds),
            "{quota}: {left} ms"
        );
    }
}

/// With the clock of the server, a counter exists until its last instant and not longer.
#[tokio::test]
async fn key_expires_without_further_calls() {
    let server = Server::start();
    let store = server.store().build().unwrap();
    let (alice, short) = (user("alice"), counter("short", "1/10ms, fixed-window"));
    assert!(take(&store, &alice, &short).await.unwrap().is_allowed());
    assert_eq!(server.keys().len(), 1);
    let started = std::time::Instant::now();
    while !server.keys().is_empty() {
        assert!(
            started.elapsed() < super::PATIENCE,
            "the key does not expire"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A key loses its expiry (`PERSIST`, a restore, a copy). The first decision in the next second sets
/// it again, allowed or denied. Every other counter of the key is kept.
#[tokio::test]
async fn lost_expiry_is_set_again() {
    let server = Server::start();
    let store = server.store().use_client_clock().build().unwrap();
    let (alice, monthly) = (user("alice"), counter("monthly", "9/month, sliding-log"));
    for quota in FIVE_A_DAY {
        let daily = counter("daily", quota);
        let check = Check::new(&alice, &monthly);
        take_at(&store, &check, NEW_YEAR).await.unwrap();
        for round in 0..7 {
            for key in server.keys() {
                server.run::<i64>(&["PERSIST", &key]);
                assert_eq!(server.run::<i64>(&["PTTL", &key]), -1);
            }
            // The first decision of a second sets the expiry of the subject's key again.
            let check = Check::new(&alice, &daily);
            let usage = take_at(&store, &check, later(1 + round)).await.unwrap();
            assert_eq!(usage.is_allowed(), round < 5, "{quota}");
            let left: i64 = server.run(&["PTTL", &subject_keys(&server)[0]]);
            let needed = 29 * 86_400_000..=31 * 86_400_000;
            assert!(needed.contains(&left), "{quota}, round {round}: {left} ms");
            // Decisions about a log set the expiry of its key again.
            let check = Check::new(&alice, &monthly);
            take_at(&store, &check, later(1 + round)).await.unwrap();
            server.assert_that_every_key_ends();
        }
        store.reset_subject(&alice).await.unwrap();
    }
}

#[tokio::test]
async fn key_of_another_type_is_replaced() {
    let server = Server::start();
    let store = server.store().build().unwrap();
    let (alice, daily) = (user("alice"), counter("daily", "2/day"));
    take(&store, &alice, &daily).await.unwrap();
    let key = server.keys().remove(0);
    for wrong in [
        vec!["SET", &key, "hello"],
        vec!["SET", &key, ""],
        vec!["HSET", &key, "a", "b"],
        vec!["RPUSH", &key, "a", "b"],
        vec!["SADD", &key, "a"],
        vec!["ZADD", &key, "1", "a"],
    ] {
        server.run::<i64>(&["DEL", &key]);
        let _: redis::Value = server.run(&wrong);
        assert_eq!(look(&store, &alice, &daily).await.used(), 0);
        let checks = [Check::new(&alice, &daily)];
        let batch = Batch::new(&checks).unwrap();
        store.refund(&batch, NEW_YEAR, NEW_YEAR).await.unwrap();
        for left in [1, 0] {
            let usage = take(&store, &alice, &daily).await.unwrap();
            assert_eq!(
                (usage.is_allowed(), usage.remaining()),
                (true, left),
                "{wrong:?}"
            );
        }
        assert!(!take(&store, &alice, &daily).await.unwrap().is_allowed());
        assert_eq!(server.run::<String>(&["TYPE", &key]), "string");
    }
    // Such a key can be reset, and does not affect counting.
    let _: redis::Value = server.run(&["SET", &key, "hello"]);
    let checks = [Check::new(&alice, &daily)];
    store.reset(&Batch::new(&checks).unwrap()).await.unwrap();
    assert_eq!(store.len().await.unwrap(), 0);
    store.reset_subject(&alice).await.unwrap();
    assert!(server.keys().is_empty());
}

/// Rules are added and removed while a subject stays active. Expired counters of removed rules are
/// deleted.
#[tokio::test]
async fn expired_counters_are_removed_from_a_large_key() {
    let server = Server::start();
    let store = server.store().use_client_clock().build().unwrap();
    let alice = user("alice");
    let long = counter("long", "200/day, sliding-log");
    let charge = async |rule: usize, seconds: u64| {
        let short = counter(&format!("rule-{rule}"), FIVE[rule % 5]);
        let checks = [Check::new(&alice, &short), Check::new(&alice, &long)];
        let batch = Batch::new(&checks).unwrap();
        assert!(
            store
                .decide(&batch, later(seconds))
                .await
                .unwrap()
                .is_allowed()
        );
    };
    for rule in 0..100 {
        charge(rule, rule as u64).await;
    }
    let key = subject_keys(&server).remove(0);
    assert!(server.run::<u64>(&["STRLEN", &key]) > 100 * 17);
    assert_eq!(store.len().await.unwrap(), 101);
    charge(100, 4 * 3_600).await;
    assert_eq!(
        store.len().await.unwrap(),
        2,
        "a new counter and the long one"
    );
    let checks = [Check::new(&alice, &long)];
    let batch = Batch::new(&checks).unwrap();
    let usages = store.peek(&batch, later(4 * 3_600)).await.unwrap();
    assert_eq!(usages.usages()[0].used(), 101);
    server.assert_that_every_key_ends();
}

/// A long log is stored in several fields. A reset deletes all of them.
#[tokio::test]
async fn reset_deletes_all_fields_of_a_long_log() {
    let server = Server::start();
    let store = server.store().use_client_clock().build().unwrap();
    let (alice, log) = (user("alice"), counter("log", "1000/hour, sliding-log"));
    let other = counter("other", "9/hour");
    let fill = async || {
        for second in 0..300 {
            take_at(&store, &Check::new(&alice, &log), later(second))
                .await
                .unwrap();
        }
        take_at(&store, &Check::new(&alice, &other), later(1))
            .await
            .unwrap();
    };
    fill().await;
    let key = log_keys(&server).remove(0);
    assert_eq!(server.run::<u64>(&["HLEN", &key]), 1 + 4);
    assert_eq!(
        store.len().await.unwrap(),
        2,
        "two counters, however they are stored"
    );
    let checks = [Check::new(&alice, &log)];
    store.reset(&Batch::new(&checks).unwrap()).await.unwrap();
    assert!(log_keys(&server).is_empty());
    assert_eq!(look(&store, &alice, &other).await.used(), 1);

    fill().await;
    assert_eq!(store.sweep(later(3_600 + 200)).await.unwrap(), 0);
    assert_eq!(
        store.sweep(later(2 * 3_600 - 1)).await.unwrap(),
        1,
        "the log"
    );
    assert!(log_keys(&server).is_empty());
    assert_eq!(store.len().await.unwrap(), 1);

    fill().await;
    store.reset_subject(&alice).await.unwrap();
    assert!(server.keys().is_empty());
}

/// A subject was charged while the clock of the server was years ahead. After the correction, that
/// counter does not refill, but it expires with its window, not in that year.
#[tokio::test]
async fn charge_by_a_clock_years_ahead_expires_with_its_window() {
    let server = Server::start();
    let store = server.store().use_client_clock().build().unwrap();
    let (alice, hourly) = (user("alice"), counter("hourly", "1/hour"));
    let check = Check::new(&alice, &hourly);
    let (now, ahead) = (NEW_YEAR, later(10 * 365 * 86_400));
    assert!(take_at(&store, &check, ahead).await.unwrap().is_allowed());
    let key = server.keys().remove(0);
    // The expiry that the server had written: in that year.
    let ten_years = 10 * 365 * 86_400_000_u64;
    server.run::<i64>(&["PEXPIRE", &key, &ten_years.to_string()]);
    let usage = take_at(&store, &check, now).await.unwrap();
    assert_eq!(usage.outcome(), Outcome::Denied);
    let left: u64 = server.run(&["PTTL", &key]);
    assert!(left < 3 * 3_600_000, "{left} ms");
}

#[tokio::test]
async fn a_batch_over_several_subjects_is_charged_as_one() {
    let server = Server::start();
    let store = server.store().build().unwrap();
    let (per_user, per_tenant) = (counter("user", "9/day"), counter("tenant", "2/day"));
    let (total, monthly) = (counter("all", "9/day"), counter("user", "9/month"));
    let names = ["a", "b", "c"];
    let (users, all) = (names.map(user), Subject::all());
    let acme = Subject::from([("tenant", "acme")]);
    for (round, alice) in users.iter().enumerate() {
        // The checks are not sorted by subject.
        let checks = [
            Check::new(alice, &per_user),
            Check::new(&acme, &per_tenant),
            Check::new(alice, &monthly).with_cost(2),
            Check::new(&all, &total),
        ];
        let batch = Batch::new(&checks).unwrap();
        let usages = store.decide(&batch, NEW_YEAR).await.unwrap();
        let found: Vec<_> = usages.usages().iter().map(Usage::used).collect();
        match round {
            0 => assert_eq!(found, [1, 1, 2, 1]),
            1 => assert_eq!(found, [1, 2, 2, 2]),
            _ => assert_eq!(found, [0, 2, 0, 2], "a denied batch charges nothing"),
        }
        assert_eq!(usages.is_allowed(), round < 2);
    }
    let keys: HashSet<_> = server.keys().into_iter().collect();
    assert_eq!(keys.len(), 4, "a denied subject has no key");
}

/// Without this, the log would expire before its entries, and its amount would be admitted twice. The
/// other counter expires later, and was charged in the same second before.
#[tokio::test]
async fn log_lives_as_long_as_its_entries_next_to_a_longer_counter() {
    for quota in [FIVE[2], FIVE[3]] {
        let server = Server::start();
        let store = server.store().use_client_clock().build().unwrap();
        let alice = user("alice");
        let (log, daily) = (counter("log", quota), counter("daily", "100/day"));
        let (of_log, of_day) = (Check::new(&alice, &log), Check::new(&alice, &daily));
        take_at(&store, &of_log, NEW_YEAR).await.unwrap();
        // Half an hour passes on the server's clock.
        let key = log_keys(&server).remove(0);
        let left: i64 = server.run(&["PTTL", &key]);
        let _: i64 = server.run(&["PEXPIRE", &key, &(left - 1_800_000).to_string()]);
        take_at(&store, &of_day, later(1_800)).await.unwrap();
        let both = [of_day, of_log];
        let both = Batch::new(&both).unwrap();
        let usages = store.decide(&both, later(1_800)).await.unwrap();
        assert!(usages.is_allowed());
        let left: i64 = server.run(&["PTTL", &key]);
        assert!(left >= 3_600_000, "{quota}: {left} ms");
    }
}
