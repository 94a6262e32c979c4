//! Overrides: one process sets them, all processes apply them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tollgate::{
    Clock, ManualClock, Override, Overrides, RedisStore, Store as _, Subject, Timestamp,
};

use super::{PATIENCE, Server};
use crate::support::clock::NEW_YEAR as NOW;
use crate::support::store_ext::StoreExt as _;

/// Documented: one second. A busy machine may add one.
const WITHIN: Duration = Duration::from_secs(2);

fn list(store: &RedisStore) -> Vec<Override> {
    store.override_list(NOW)
}

fn same(found: &[Override], wanted: &[Override]) -> bool {
    found.len() == wanted.len() && wanted.iter().all(|one| found.contains(one))
}

/// Waits until the copy of a store has exactly these overrides.
async fn wait_for_overrides(store: &RedisStore, wanted: &[Override], within: Duration) {
    let started = Instant::now();
    while !same(&list(store), wanted) {
        let passed = started.elapsed();
        assert!(passed < within, "after {passed:?}: {:?}", list(store));
        sleep(Duration::from_millis(5)).await;
    }
}

fn store(server: &Server, prefix: &str) -> RedisStore {
    server.store().prefix(prefix).build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn override_reaches_all_processes_within_a_second() {
    let server = Server::start();
    let (one, two) = (store(&server, "app"), store(&server, "app"));
    let other_application = store(&server, "other");
    let acme = Override::new([("tenant", "acme")], "outbound", "2000/hour").unwrap();
    let mallory = Override::new([("user", "mallory")], "global", "blocked").unwrap();
    let mallory = mallory.until(Timestamp::from_secs(4_000_000_000));
    one.set_override(acme.clone()).await.unwrap();
    assert!(
        same(&list(&one), std::slice::from_ref(&acme)),
        "at once in the process that set it"
    );
    wait_for_overrides(&two, std::slice::from_ref(&acme), WITHIN).await;
    two.set_override(mallory.clone()).await.unwrap();
    wait_for_overrides(&one, &[acme.clone(), mallory.clone()], WITHIN).await;
    // A process that starts later has them from the start.
    let late = store(&server, "app");
    wait_for_overrides(&late, &[acme.clone(), mallory.clone()], WITHIN).await;

    let subject = acme.subject();
    assert!(late.remove_override(&subject, "outbound").await.unwrap());
    assert!(!late.remove_override(&subject, "outbound").await.unwrap());
    for store in [&one, &two, &late] {
        wait_for_overrides(store, std::slice::from_ref(&mallory), WITHIN).await;
    }
    assert!(list(&other_application).is_empty());
    // Clearing the counters keeps the overrides.
    one.clear().await.unwrap();
    wait_for_overrides(&store(&server, "app"), &[mallory], WITHIN).await;
}

/// A sequence of changes leaves the same overrides in Redis and in a table in memory.
#[tokio::test(flavor = "multi_thread")]
async fn changes_have_the_effect_of_those_of_a_table() {
    let server = Server::start();
    let (changing, table) = (store(&server, "app"), Overrides::new());
    let subjects = [
        Subject::from([("user", "a")]),
        Subject::from([("tenant", "a")]),
        Subject::all(),
    ];
    // Names that are prefixes of other names, including the separator of a field.
    let rules = ["a", "a:1h", "a:*"];
    let quotas = ["5/hour", "6/hour", "7/minute", "blocked", "unlimited"];
    for round in 0..300_usize {
        let (subject, rule) = (subjects[round * 7 % 3], rules[round * 5 / 3 % 3]);
        if round % 6 == 5 {
            let removed = changing.remove_override(&subject, rule).await.unwrap();
            assert_eq!(removed, table.remove(&subject, rule), "round {round}");
        } else {
            let new = Override::new(subject, rule, quotas[round * 11 % 5]).unwrap();
            changing.set_override(new.clone()).await.unwrap();
            table.set(new);
        }
        if round % 50 == 49 {
            wait_for_overrides(&store(&server, "app"), &table.list(NOW), PATIENCE).await;
        }
    }
}

/// The key expires with the last override that has an end, and stays while one has none.
#[tokio::test(flavor = "multi_thread")]
async fn ended_overrides_are_removed() {
    let server = Server::start();
    let store = store(&server, "app");
    let key = "app:v2:overrides";
    let (seconds, _): (u64, u64) = server.run(&["TIME"]);
    let until = |more: u64| Timestamp::from_secs(seconds + more);
    let soon = Override::new("alice", "api", "5/hour")
        .unwrap()
        .until(until(100));
    let later = Override::new("bob", "api", "5/hour")
        .unwrap()
        .until(until(1_000));
    let over = Override::new("carol", "api", "5/hour")
        .unwrap()
        .until(until(0));
    for (new, left) in [(&later, 1_000), (&over, 1_000), (&soon, 1_000)] {
        store.set_override(new.clone()).await.unwrap();
        let ends_in: u64 = server.run(&["TTL", key]);
        assert!((left - 30..=left).contains(&ends_in), "{ends_in}");
    }
    // The override that had ended was removed by a later change.
    let fields: Vec<String> = server.run(&["HKEYS", key]);
    let is_override = |name: &&String| !name.starts_with("log:") && *name != "head";
    assert_eq!(fields.iter().filter(is_override).count(), 2, "{fields:?}");
    let for_good = Override::new("dora", "api", "unlimited").unwrap();
    store.set_override(for_good.clone()).await.unwrap();
    assert_eq!(server.run::<i64>(&["TTL", key]), -1);
    assert!(
        store
            .remove_override(&for_good.subject(), "api")
            .await
            .unwrap()
    );
    assert!(server.run::<i64>(&["TTL", key]) > 900);
    for gone in [&soon, &later] {
        assert!(store.remove_override(&gone.subject(), "api").await.unwrap());
    }
    assert!(server.keys().is_empty());
}

/// Without Redis, no override can be set, and the local copy stays valid.
#[tokio::test(flavor = "multi_thread")]
async fn overrides_outlive_the_connection() {
    let mut server = Server::start();
    let store = store(&server, "app");
    let acme = Override::new([("tenant", "acme")], "outbound", "2000/hour").unwrap();
    store.set_override(acme.clone()).await.unwrap();
    server.kill();
    let mallory = Override::new([("user", "mallory")], "global", "blocked").unwrap();
    assert!(store.set_override(mallory).await.is_err());
    assert!(same(&list(&store), &[acme]));
    // The server restarts empty, and so does the copy.
    server.launch();
    wait_for_overrides(&store, &[], PATIENCE).await;
}

/// Foreign values under the key are ignored, and replaced by the first change.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_values_are_ignored() {
    let server = Server::start();
    let store = store(&server, "app");
    let (key, acme) = (
        "app:v2:overrides",
        Override::new("acme", "api", "5/hour").unwrap(),
    );
    server.run::<u64>(&[
        "HSET",
        key,
        "version",
        "x",
        "a",
        "b",
        "c",
        "- api 5%2F1h a=ghost:x",
    ]);
    store.set_override(acme.clone()).await.unwrap();
    wait_for_overrides(&store, std::slice::from_ref(&acme), PATIENCE).await;
    server.run::<String>(&["SET", key, "hello"]);
    store.set_override(acme.clone()).await.unwrap();
    assert_eq!(server.run::<String>(&["TYPE", key]), "hash");
}

/// Two different changes may have the same number, because a failover has lost the first of them.
#[tokio::test(flavor = "multi_thread")]
async fn lost_change_is_noticed_after_a_failover() {
    let server = Server::start();
    let [first, lost, second, third] = ["first", "lost", "second", "third"]
        .map(|name| Override::new(name, "api", "5/hour").unwrap());
    let copy = |from: &str, to: &str| {
        let key = |prefix: &str| format!("{prefix}:v2:overrides");
        server.run::<u64>(&["COPY", &key(from), &key(to), "REPLACE"])
    };
    // Two histories with the same first changes.
    let changing = store(&server, "changing");
    changing.set_override(first.clone()).await.unwrap();
    copy("changing", "replica");
    changing.set_override(lost.clone()).await.unwrap();
    copy("changing", "primary");
    copy("replica", "changing");
    changing.set_override(second.clone()).await.unwrap();
    copy("changing", "promoted");
    changing.set_override(third.clone()).await.unwrap();

    for (promoted, expected) in [
        ("promoted", vec![first.clone(), second.clone()]),
        ("changing", vec![first.clone(), second.clone(), third]),
        ("replica", vec![first.clone()]),
    ] {
        copy("primary", "app");
        let store = store(&server, "app");
        wait_for_overrides(&store, &[first.clone(), lost.clone()], PATIENCE).await;
        copy(promoted, "app");
        wait_for_overrides(&store, &expected, PATIENCE).await;
    }
}

/// Bug: the copy of the process that made the lost change kept it, because its version before that change
/// is in both histories.
#[tokio::test(flavor = "multi_thread")]
async fn own_change_is_removed_if_a_failover_has_lost_it() {
    let server = Server::start();
    let [first, lost, second] =
        ["first", "lost", "second"].map(|name| Override::new(name, "api", "5/hour").unwrap());
    let copy = |from: &str, to: &str| {
        let key = |prefix: &str| format!("{prefix}:v2:overrides");
        server.run::<u64>(&["COPY", &key(from), &key(to), "REPLACE"])
    };
    let promoted = store(&server, "promoted");
    promoted.set_override(first.clone()).await.unwrap();
    copy("promoted", "app");
    let changing = store(&server, "app");
    wait_for_overrides(&changing, std::slice::from_ref(&first), PATIENCE).await;
    promoted.set_override(second.clone()).await.unwrap();

    // The failover comes before the next poll.
    changing.set_override(lost).await.unwrap();
    copy("promoted", "app");
    wait_for_overrides(&changing, &[first.clone(), second.clone()], WITHIN).await;
    // A removal is lost.
    let removed = changing.remove_override(&second.subject(), "api");
    assert!(removed.await.unwrap());
    promoted.set_override(first.clone()).await.unwrap();
    copy("promoted", "app");
    wait_for_overrides(&changing, &[first, second], WITHIN).await;
}

/// Bug: the first change deleted all overrides that a later version had written.
#[tokio::test(flavor = "multi_thread")]
async fn overrides_of_a_later_format_are_an_error() {
    let server = Server::start();
    let (key, acme) = (
        "app:v2:overrides",
        Override::new("acme", "api", "5/hour").unwrap(),
    );
    let old = store(&server, "app");
    old.set_override(acme.clone()).await.unwrap();
    let head: String = server.run(&["HGET", key, "head"]);
    server.run::<u64>(&["HSET", key, "head", &format!("{head} more")]);
    let fields: u64 = server.run(&["HLEN", key]);
    let bob = Override::new("bob", "api", "5/hour").unwrap();
    let set = old.set_override(bob).await.map(|()| true);
    let removed = old.remove_override(&acme.subject(), "api").await;
    for result in [set, removed] {
        let error = result.unwrap_err().to_string();
        assert!(
            error.contains("a format that this version cannot read"),
            "{error}"
        );
    }
    assert_eq!(server.run::<u64>(&["HLEN", key]), fields);
    // The copy stays valid, and health names the cause. A new process follows its failure modes.
    let started = Instant::now();
    let new = store(&server, "app");
    while old.health().is_healthy() || new.health().is_healthy() {
        assert!(
            started.elapsed() < PATIENCE,
            "health does not name the cause"
        );
        sleep(Duration::from_millis(5)).await;
    }
    assert!(same(&list(&old), &[acme]) && new.overrides().unwrap().table().is_loading());
}

/// Bug: with the clients' clock, expired overrides stayed in Redis for ever.
#[tokio::test(flavor = "multi_thread")]
async fn ended_overrides_are_removed_with_the_clients_clock() {
    let server = Server::start();
    let store = server.store().prefix("app").use_client_clock();
    let (store, clock) = (store.build().unwrap(), ManualClock::at(NOW));
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    store.use_clock(&shared);
    let (key, end) = ("app:v2:overrides", Duration::from_secs(100));
    let new = |name| Override::new(name, "api", "5/hour").unwrap();
    let ends = NOW.saturating_add(end);
    store.set_override(new("alice").until(ends)).await.unwrap();
    let left: u64 = server.run(&["TTL", key]);
    assert!(
        (130..=160).contains(&left),
        "with the tolerance for clock differences: {left}"
    );
    let fields = || {
        let fields: Vec<String> = server.run(&["HKEYS", key]);
        let is_override = |name: &&String| !name.starts_with("log:") && *name != "head";
        fields.iter().filter(is_override).count()
    };
    // The clocks of other processes may be behind.
    clock.advance(end + Duration::from_secs(59));
    store.set_override(new("bob")).await.unwrap();
    assert_eq!(fields(), 2);
    clock.advance(Duration::from_secs(1));
    store.set_override(new("carol")).await.unwrap();
    assert_eq!(fields(), 2);
}
