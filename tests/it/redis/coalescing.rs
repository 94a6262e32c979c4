//! Coalesced calls: decisions that wait at the same time share a call, and each gets its own reply.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio::time::sleep;
use tollgate::{Check, Counter, RedisStore, StoreError, StoreErrorKind, Subject, Timestamp, Usage};

use super::calls::calls;
use super::{PATIENCE, Server, counter, look, take, user};
use crate::support::store_ext::StoreExt as _;

/// Sends a decision, and waits for the reply in a task.
fn decide(
    store: &Arc<RedisStore>,
    name: &'static str,
    counter: &Counter,
    cost: u64,
) -> JoinHandle<Result<Usage, StoreError>> {
    let subject = user(name);
    let check = Check::new(&subject, counter).with_cost(cost);
    // The decision is queued here. The task only waits for the reply.
    let answer = store.decide_one(&check, Timestamp::EPOCH);
    tokio::spawn(async move { answer.await.map(|(usage, _)| usage) })
}

/// Loads the scripts into a new server.
async fn load_scripts(store: &Arc<RedisStore>, counters: &[&Counter]) {
    for counter in counters {
        take(store, &user("load_scripts-up"), counter)
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_decisions_share_few_calls() {
    const TASKS: u64 = 256;
    const EACH: u64 = 20;
    let server = Server::start();
    let store = Arc::new(server.store().build().unwrap());
    let many = counter("many", "1000000/day");
    load_scripts(&store, &[&many]).await;
    server.run::<String>(&["CONFIG", "RESETSTAT"]);
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (store, many) = (Arc::clone(&store), many.clone());
            tokio::spawn(async move {
                let mut used = Vec::new();
                for _ in 0..EACH {
                    used.push(take(&store, &user("hot"), &many).await.unwrap().used());
                }
                used
            })
        })
        .collect();
    let mut used = Vec::new();
    for task in tasks {
        let by_task = task.await.unwrap();
        assert!(
            by_task.is_sorted(),
            "replies are not in the order of the requests"
        );
        used.extend(by_task);
    }
    // No request was lost or charged twice.
    used.sort_unstable();
    assert!(used.into_iter().eq(1..=TASKS * EACH));
    let calls = calls(&server, "evalsha");
    assert!(calls < TASKS * EACH / 4, "{calls} calls");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_coalescing_each_decision_is_one_call() {
    let server = Server::start();
    let store = Arc::new(server.store().coalescing(false).build().unwrap());
    let many = counter("many", "1000000/day");
    load_scripts(&store, &[&many]).await;
    server.run::<String>(&["CONFIG", "RESETSTAT"]);
    let tasks: Vec<_> = (0..300).map(|_| decide(&store, "hot", &many, 1)).collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(calls(&server, "evalsha"), 300);
    assert_eq!(look(&store, &user("hot"), &many).await.used(), 300);
}

/// All kinds of counters, with few and with many checks, in one call. Each batch is decided as if it
/// were sent alone.
#[tokio::test(flavor = "multi_thread")]
async fn batches_of_a_coalesced_call_are_decided_separately() {
    let server = Server::start();
    let store = Arc::new(server.store().build().unwrap());
    let counters = [
        counter("a", "10/day"),
        counter("b", "10/day, token-bucket"),
        counter("c", "10/day, sliding-log"),
        counter("d", "10/month, fixed-window"),
        counter("e", "10/day, sliding-buckets"),
    ];
    load_scripts(&store, &[&counters[0]]).await;
    server.signal("STOP");
    let mut tasks = Vec::new();
    for round in 1..=15 {
        for counter in &counters {
            tasks.push((round, decide(&store, "alice", counter, 1)));
            // Always denied. The other requests are not affected.
            tasks.push((0, decide(&store, "alice", counter, 11)));
        }
    }
    server.signal("CONT");
    for (round, task) in tasks {
        let usage = task.await.unwrap().unwrap();
        match round {
            0 => assert!(!usage.is_allowed()),
            1..=10 => assert_eq!((usage.is_allowed(), usage.used()), (true, round)),
            _ => assert_eq!((usage.is_allowed(), usage.used()), (false, 10)),
        }
    }
}

/// A full server rejects writes. Requests of the same call that write nothing, because they are denied,
/// get their replies.
#[tokio::test(flavor = "multi_thread")]
async fn error_of_one_request_does_not_affect_the_others_of_its_call() {
    let server = Server::start();
    let store = Arc::new(server.store().build().unwrap());
    let one = counter("one", "1/day");
    take(&store, &user("alice"), &one).await.unwrap();
    server.run::<String>(&["CONFIG", "SET", "maxmemory", "1"]);
    server.signal("STOP");
    // These fill the two calls in flight. The others wait and share a call.
    let first = [
        decide(&store, "alice", &one, 1),
        decide(&store, "alice", &one, 1),
    ];
    sleep(Duration::from_millis(20)).await;
    let names = ["alice", "bob", "alice", "carol", "alice"];
    let sent = names.map(|name| (name, decide(&store, name, &one, 1)));
    sleep(Duration::from_millis(20)).await;
    server.signal("CONT");
    for task in first {
        assert!(!task.await.unwrap().unwrap().is_allowed());
    }
    for (name, task) in sent {
        match task.await.unwrap() {
            Ok(usage) => assert!(name == "alice" && !usage.is_allowed()),
            Err(error) => assert!(
                name != "alice" && error.to_string().contains("OOM"),
                "{error}"
            ),
        }
    }
    assert!(store.is_connected());
}

/// An error before the first counter is read is returned to every request of the call, and the script
/// terminates.
#[tokio::test(flavor = "multi_thread")]
async fn error_of_a_coalesced_call_is_returned_to_each_request() {
    let server = Server::start();
    let may = ["on", ">pass", "~*", "+@all", "-time"];
    server.run::<String>(&[&["ACL", "SETUSER", "app"], &may[..]].concat());
    let url = server.url().replace("://", "://app:pass@");
    let store = RedisStore::builder(&url).deadline(PATIENCE).build();
    let store = Arc::new(store.unwrap());
    let counters = [
        counter("one", "10/day"),
        counter("two", "10/hour, fixed-window"),
    ];
    for counter in &counters {
        take(&store, &user("alice"), counter).await.unwrap_err();
    }
    server.signal("STOP");
    let names = ["alice", "alice", "alice", "bob", "bob", "carol", "alice"];
    let sent = names.map(|name| {
        counters
            .each_ref()
            .map(|counter| decide(&store, name, counter, 1))
    });
    server.signal("CONT");
    for task in sent.into_iter().flatten() {
        let error = task.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Permanent, "{error}");
        // The messages of Redis and of Valkey.
        let message = error.to_string();
        assert!(
            message.contains("can't run") || message.contains("no permissions"),
            "{message}"
        );
    }
    assert_eq!(server.run::<String>(&["PING"]), "PONG");
}

/// A server that was frozen finds at most two calls. Requests that expired in the queue get an error
/// that states it, and are never charged.
#[tokio::test(flavor = "multi_thread")]
async fn request_that_expires_in_the_queue_is_not_charged_later() {
    let server = Server::start();
    let store = server.store().deadline(Duration::from_millis(100));
    let store = Arc::new(store.build().unwrap());
    let many = counter("many", "1000000/day");
    let started = Instant::now();
    while take(&store, &user("load_scripts-up"), &many).await.is_err() {
        assert!(started.elapsed() < PATIENCE);
    }
    server.signal("STOP");
    let sent = [1, 2].map(|_| decide(&store, "alice", &many, 1));
    sleep(Duration::from_millis(20)).await;
    let queued: Vec<_> = (0..500)
        .map(|_| decide(&store, "alice", &many, 1))
        .collect();
    let mut messages = Vec::new();
    for task in sent.into_iter().chain(queued) {
        messages.push(task.await.unwrap().unwrap_err().to_string());
    }
    server.signal("CONT");
    let unsent = messages
        .iter()
        .filter(|messages| messages.contains("not sent"))
        .count();
    let charged = messages.len() - unsent;
    assert!(unsent >= 500 - 64, "{unsent} of {messages:?}");
    let started = Instant::now();
    let used = loop {
        match take(&store, &user("alice"), &many).await {
            Ok(usage) => break usage.used(),
            Err(error) => assert!(started.elapsed() < PATIENCE, "{error}"),
        }
    };
    assert_eq!(used, charged as u64 + 1, "exactly those that were sent");
    let subject = Subject::from([("user", "absent")]);
    assert_eq!(look(&store, &subject, &many).await.used(), 0);
}
