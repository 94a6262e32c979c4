//! Overrides: one process sets them, all processes apply them.

use std::time::{Duration, Instant};

use tokio::time::sleep;
use tollgate::{Override, Overrides, RedisStore, Subject, Timestamp};

use super::{PATIENCE, Server};
use crate::support::clock::NEW_YEAR as NOW;
use crate::support::store_ext::StoreExt as _;

/// Promised: one second. A busy machine may add one.
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
    // A process that starts later has them from its start.
    let late = store(&server, "app");
    wait_for_overrides(&late, &[acme.clone(), mallory.clone()], WITHIN).await;

    let subject = acme.subject();
    assert!(late.remove_override(&subject, "outbound").await.unwrap());
    assert!(!late.remove_override(&subject, "outbound").await.unwrap());
    for store in [&one, &two, &late] {
        wait_for_overrides(store, std::slice::from_ref(&mallory), WITHIN).await;
    }
    assert!(list(&other_application).is_empty());
    // Clearing the counters keeps them.
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
    // Names that are the beginning of others, with what comes after the name in a field.
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

/// Without Redis, no override can be set, and the copy stays valid.
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
    // The server comes back empty, and so does the copy.
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
