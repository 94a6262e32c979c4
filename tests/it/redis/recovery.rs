//! Circuit breakers of single servers: a failing server affects only its own callers, and recovery
//! needs no requests.

#![expect(
    clippy::print_stdout,
    reason = "`scripts/test-faults` shows what was measured"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tollgate::{
    Batch, Check, Counter, RedisStore, Store as _, StoreHealth, Subject, Timestamp, Usage,
};

use super::nodes::Nodes;
use super::{PATIENCE, RECOVERY, Server, counter, look, take, user};
use crate::support::store_ext::StoreExt as _;

/// Long enough that a busy machine causes no late replies.
const DEADLINE: Duration = Duration::from_millis(500);
/// Additional time on a busy machine.
const SLOW_MACHINE: Duration = Duration::from_secs(2);

fn message(store: &RedisStore) -> Option<String> {
    match store.health() {
        StoreHealth::Degraded { why, .. } => Some(why.to_string()),
        _ => None,
    }
}

/// Waits until the store reports this health. Sends no request.
async fn wait_for_health(stores: &[Arc<RedisStore>], healthy: bool, within: Duration) {
    let started = Instant::now();
    while stores
        .iter()
        .any(|store| store.health().is_healthy() != healthy)
    {
        let messages: Vec<_> = stores.iter().map(|store| message(store)).collect();
        assert!(started.elapsed() < within, "{messages:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Sends `count` requests of a caller through each store at once, and expects that none fails. Returns
/// how many were admitted.
async fn burst(stores: &[Arc<RedisStore>], name: &str, counter: &Counter, count: usize) -> u64 {
    let tasks: Vec<_> = stores
        .iter()
        .flat_map(|store| (0..count).map(move |_| store))
        .map(|store| {
            let (store, counter, name) = (Arc::clone(store), counter.clone(), name.to_owned());
            tokio::spawn(async move { take(&store, &user(&name), &counter).await })
        })
        .collect();
    let mut admitted = 0;
    for task in tasks {
        let usage = task.await.unwrap().unwrap();
        admitted += u64::from(usage.is_allowed());
    }
    admitted
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_master_affects_only_its_own_callers() {
    const LIMIT: u64 = 10;
    let nodes = Nodes::start();
    let stores = [(); 2].map(|()| Arc::new(nodes.store().deadline(DEADLINE).build().unwrap()));
    let limited = counter("limited", "10/day, fixed-window");
    let callers = nodes.callers_by_node(&stores[0]).await;
    for name in callers.iter().flatten() {
        take(&stores[1], &user(name), &counter("scout", "1000/day"))
            .await
            .unwrap();
    }
    let [first, frozen, last] = &callers;
    let address = nodes.servers[1].address().to_string();
    nodes.servers[1].signal("STOP");

    // Callers of the frozen node keep sending requests. Each error names the node.
    let done = Arc::new(AtomicBool::new(false));
    let sick: Vec<_> = stores
        .iter()
        .map(|store| {
            let (store, name) = (Arc::clone(store), frozen[0].clone());
            let (done, address, limited) = (Arc::clone(&done), address.clone(), limited.clone());
            tokio::spawn(async move {
                while !done.load(Ordering::SeqCst) {
                    let error = take(&store, &user(&name), &limited).await.unwrap_err();
                    assert!(error.to_string().contains(&address), "{error}");
                    sleep(Duration::from_millis(5)).await;
                }
            })
        })
        .collect();
    for name in first.iter().chain(last) {
        assert_eq!(burst(&stores, name, &limited, 12).await, LIMIT, "{name}");
    }
    wait_for_health(&stores, false, PATIENCE).await;
    // The store stays degraded, and reports only this node.
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(1_500) {
        for store in &stores {
            let message = message(store).expect("degraded while the node is frozen");
            assert!(message.contains(&address), "{message}");
            for other in [0, 2] {
                let other = nodes.servers[other].address().to_string();
                assert!(!message.contains(&other), "{message}");
            }
        }
        assert_eq!(burst(&stores, &first[0], &limited, 2).await, 0);
    }
    done.store(true, Ordering::SeqCst);
    for task in sick {
        task.await.unwrap();
    }

    // Callers of the node fail at once, and a batch that includes it charges no other node.
    let (wide, started) = (counter("wide", "100/day"), Instant::now());
    for name in first.iter().chain(last) {
        let (healthy, sick) = (user(name), user(&frozen[0]));
        let checks = [Check::new(&healthy, &wide), Check::new(&sick, &wide)];
        let batch = Batch::new(&checks).unwrap();
        let error = stores[0]
            .decide(&batch, Timestamp::EPOCH)
            .await
            .unwrap_err();
        assert!(error.to_string().contains(&address), "{error}");
    }
    assert!(started.elapsed() < DEADLINE, "{:?}", started.elapsed());
    for name in first.iter().chain(last) {
        let started = Instant::now();
        while look(&stores[0], &user(name), &wide).await.used() > 0 {
            assert!(started.elapsed() < PATIENCE, "{name} stays charged");
            sleep(Duration::from_millis(5)).await;
        }
    }

    nodes.servers[1].signal("CONT");
    wait_for_health(&stores, true, RECOVERY + SLOW_MACHINE).await;
    for name in &frozen[1..] {
        assert_eq!(burst(&stores, name, &limited, 12).await, LIMIT, "{name}");
    }
}

/// An outage ends while no request is sent. Health recovers without requests, and the first burst of
/// two processes is counted exactly in Redis.
#[tokio::test(flavor = "multi_thread")]
async fn recovery_without_requests_loses_no_count() {
    const LIMIT: u64 = 50;
    let mut server = Server::start();
    let prefix = "recovery";
    let stores = [(); 2].map(|()| {
        let store = server.store().prefix(prefix).deadline(DEADLINE);
        Arc::new(store.build().unwrap())
    });
    let limited = counter("limited", "50/day, fixed-window");
    for (round, outage) in ["freeze", "kill", "freeze"].into_iter().enumerate() {
        assert_eq!(
            burst(&stores, &format!("before-{round}"), &limited, 40).await,
            LIMIT
        );
        match outage {
            "freeze" => server.signal("STOP"),
            _ => server.kill(),
        }
        let started = Instant::now();
        while stores.iter().any(|store| store.health().is_healthy()) {
            for store in &stores {
                assert!(take(store, &user("outage"), &limited).await.is_err());
            }
            assert!(started.elapsed() < PATIENCE);
        }
        match outage {
            "freeze" => server.signal("CONT"),
            _ => server.launch(),
        }
        wait_for_health(&stores, true, RECOVERY + SLOW_MACHINE).await;
        assert_eq!(
            burst(&stores, &format!("after-{round}"), &limited, 40).await,
            LIMIT
        );
        println!(
            "{outage}, recovery without requests: {LIMIT} of 80 admitted, the limit is {LIMIT}"
        );
    }
}

/// A full server replies at once with errors. The breaker stays closed, and the first request after
/// the repair is counted.
#[tokio::test(flavor = "multi_thread")]
async fn error_replies_degrade_the_store_and_reject_nothing() {
    let server = Server::start();
    let store = server.store().build().unwrap();
    let many = counter("many", "1000/day");
    take(&store, &user("alice"), &many).await.unwrap();
    server.run::<String>(&["CONFIG", "SET", "maxmemory", "1"]);
    for _ in 0..10 {
        let error = take(&store, &user("alice"), &many).await.unwrap_err();
        assert!(error.to_string().contains("OOM"), "{error}");
    }
    assert!(message(&store).is_some_and(|message| message.contains("OOM")));
    server.run::<String>(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(take(&store, &user("alice"), &many).await.unwrap().used(), 2);
    assert!(store.health().is_healthy());
}

/// A command of an operator has a longer deadline than a decision, and is sent while the breaker is open.
#[tokio::test(flavor = "multi_thread")]
async fn commands_of_operators_outlast_a_short_outage() {
    let server = Server::start();
    let store = Arc::new(
        server
            .store()
            .deadline(Duration::from_millis(100))
            .build()
            .unwrap(),
    );
    let many = counter("many", "1000/day");
    let started = Instant::now();
    while take(&store, &user("alice"), &many).await.is_err() {
        assert!(started.elapsed() < PATIENCE);
    }
    server.signal("STOP");
    for _ in 0..4 {
        assert!(take(&store, &user("alice"), &many).await.is_err());
    }
    let reset = store.reset_subject(&user("alice"));
    server.signal("CONT");
    reset.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn valkey_urls_are_redis_urls() {
    let server = Server::start_on_tcp();
    let url = format!("valkey://{}/3", server.address());
    let store = RedisStore::builder(&url)
        .deadline(PATIENCE)
        .build()
        .unwrap();
    let usage: Usage = take(&store, &user("alice"), &counter("a", "9/day"))
        .await
        .unwrap();
    assert_eq!(usage.used(), 1);
    let keys: String = server.run(&["INFO", "keyspace"]);
    assert!(keys.contains("db3:keys=1"), "{keys}");
    let subject = Subject::from([("user", "bob")]);
    assert_eq!(
        look(&store, &subject, &counter("a", "9/day")).await.used(),
        0
    );
}
