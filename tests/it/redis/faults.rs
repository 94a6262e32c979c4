//! Failures of one server: every call ends in time, and the store recovers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::time::sleep;
use tollgate::{Counter, RedisStore, Subject};

use super::{PATIENCE, RECOVERY, Server, counter, look, take, user};
use crate::support::store_ext::StoreExt as _;

const DEADLINE: Duration = Duration::from_millis(50);
/// Additional time on a busy machine.
const SLOW_MACHINE: Duration = Duration::from_millis(950);

fn alice() -> Subject<'static> {
    user("alice")
}

fn many() -> Counter {
    counter("many", "1000000/day, fixed-window")
}

/// Charges one request, which must complete in time. Returns the usage, or the error message.
async fn try_take(store: &RedisStore) -> Result<u64, String> {
    let started = Instant::now();
    let answer = take(store, &alice(), &many()).await;
    let took = started.elapsed();
    assert!(took < DEADLINE + SLOW_MACHINE, "{took:?}: {answer:?}");
    let used = answer.map(|usage| usage.used());
    used.map_err(|error| error.to_string())
}

/// Repeats a request until it succeeds, within the documented recovery time. Returns the usage.
async fn charge_until_success(store: &RedisStore) -> u64 {
    let started = Instant::now();
    loop {
        match try_take(store).await {
            Ok(used) => return used,
            Err(error) => {
                let waited = started.elapsed();
                assert!(
                    waited < RECOVERY + SLOW_MACHINE,
                    "after {waited:?}: {error}"
                );
                sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

/// Repeats a request until it fails with this message.
async fn charge_until_error(store: &RedisStore, message: &str) -> String {
    let started = Instant::now();
    loop {
        match try_take(store).await {
            Err(error) if error.contains(message) => return error,
            other => assert!(started.elapsed() < PATIENCE, "{message}: {other:?}"),
        }
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn store_can_start_before_its_server() {
    let mut server = Server::absent(&[]);
    let store = server.store().deadline(DEADLINE).build().unwrap();
    charge_until_error(&store, "cannot be reached").await;
    assert!(!store.is_connected());
    // Without a connection, requests fail at once.
    let started = Instant::now();
    for _ in 0..100 {
        assert!(try_take(&store).await.is_err());
    }
    assert!(
        started.elapsed() < 100 * DEADLINE / 2,
        "{:?}",
        started.elapsed()
    );
    server.launch();
    assert_eq!(charge_until_success(&store).await, 1);
    assert!(store.is_connected());
}

#[tokio::test(flavor = "multi_thread")]
async fn store_reconnects_to_a_restarted_server() {
    let mut server = Server::start();
    let store = Arc::new(server.store().deadline(DEADLINE).build().unwrap());
    charge_until_success(&store).await;
    for _ in 0..3 {
        // Under load. Every request ends in time, with a result or an error.
        let load: Vec<_> = (0..8)
            .map(|_| {
                let store = Arc::clone(&store);
                tokio::spawn(async move { while try_take(&store).await.is_ok() {} })
            })
            .collect();
        sleep(Duration::from_millis(20)).await;
        server.kill();
        for task in load {
            task.await.unwrap();
        }
        charge_until_error(&store, "cannot be reached").await;
        server.launch();
        assert!(charge_until_success(&store).await >= 1);
    }
    server.assert_that_every_key_ends();
}

/// A frozen server accepts connections and bytes, and does not reply. Calls end at their deadline. Then
/// the connection is closed, and later calls fail at once.
#[tokio::test(flavor = "multi_thread")]
async fn store_reconnects_after_a_frozen_server() {
    let server = Server::start();
    let store = server.store().deadline(DEADLINE).build().unwrap();
    let before = charge_until_success(&store).await;
    server.signal("STOP");
    charge_until_error(&store, "has not answered within 50ms").await;
    charge_until_error(&store, "no connection").await;
    let started = Instant::now();
    for _ in 0..20 {
        assert!(try_take(&store).await.is_err());
    }
    assert!(
        started.elapsed() < 20 * DEADLINE / 2,
        "{:?}",
        started.elapsed()
    );
    server.signal("CONT");
    let after = charge_until_success(&store).await;
    // Only calls on the closed connection can be charged late: one after the other, until it was closed.
    assert!(after - before <= 30, "{} late charges", after - before);
}

/// During a short pause requests fail, and the connection stays open.
#[tokio::test(flavor = "multi_thread")]
async fn short_pause_keeps_the_connection() {
    let server = Server::start();
    let store = server.store().deadline(DEADLINE).build().unwrap();
    charge_until_success(&store).await;
    let before = client_id(&server);
    server.signal("STOP");
    charge_until_error(&store, "has not answered within").await;
    server.signal("CONT");
    charge_until_success(&store).await;
    assert_eq!(client_id(&server), before);
}

/// Servers close idle connections. The store reconnects before the next call.
#[tokio::test(flavor = "multi_thread")]
async fn closed_idle_connection_is_replaced_in_advance() {
    let server = Server::start();
    let store = server.store().deadline(PATIENCE).build().unwrap();
    take(&store, &alice(), &many()).await.unwrap();
    for round in 0..5 {
        let killed: u64 = server.run(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        assert_eq!(killed, 1);
        // The store opens another one without a request.
        let started = Instant::now();
        let clients = || server.run::<String>(&["CLIENT", "LIST"]).lines().count();
        while clients() < 2 || !store.is_connected() {
            assert!(started.elapsed() < PATIENCE, "no connection is opened");
            sleep(Duration::from_millis(5)).await;
        }
        let used = take(&store, &alice(), &many()).await.unwrap().used();
        assert_eq!(used, round + 2, "no call is lost");
    }
}

/// After a failover the old primary is a replica, and the connection to it is still open.
#[tokio::test(flavor = "multi_thread")]
async fn store_leaves_a_primary_that_becomes_a_replica() {
    let server = Server::start();
    let store = server.store().deadline(DEADLINE).build().unwrap();
    charge_until_success(&store).await;
    let before: u64 = client_id(&server);
    server.run::<String>(&["REPLICAOF", "127.0.0.1", "1"]);
    charge_until_error(&store, "is a read-only replica").await;
    server.run::<String>(&["REPLICAOF", "NO", "ONE"]);
    charge_until_success(&store).await;
    // The next connection is opened as soon as this one is closed.
    let started = Instant::now();
    while client_id(&server) == before {
        assert!(
            started.elapsed() < PATIENCE,
            "the connection was not replaced"
        );
        sleep(Duration::from_millis(5)).await;
    }
    charge_until_success(&store).await;
}

/// Returns the id of the connection of the store, which is the oldest one.
fn client_id(server: &Server) -> u64 {
    let clients: String = server.run(&["CLIENT", "LIST"]);
    let ids = clients.lines().filter_map(|line| line.strip_prefix("id="));
    let ids = ids.filter_map(|line| line.split(' ').next()?.parse().ok());
    ids.min().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_are_reported_and_right_ones_work() {
    let server = Server::start();
    let may = ["on", ">pass", "~shop:*", "+@all", "-@dangerous"];
    server.run::<String>(&[&["ACL", "SETUSER", "app"], &may[..]].concat());
    server.run::<String>(&["CONFIG", "SET", "requirepass", "s3cret/word"]);
    let url = |login: &str| server.url().replace("://", &format!("://{login}@"));
    for url in [server.url(), url(":wrong-word"), url("app:wrong-word")] {
        let store = RedisStore::builder(&url)
            .prefix("shop")
            .deadline(DEADLINE)
            .build()
            .unwrap();
        charge_until_error(&store, "rejects the credentials").await;
        // A connection that is being closed may cause another error first.
        let error = charge_until_error(&store, "check user and password").await;
        assert!(!error.contains("wrong-word"), "{error}");
        assert!(!format!("{store:?}").contains("wrong-word"));
    }
    for login in [":s3cret%2Fword", "app:pass"] {
        let store = RedisStore::builder(&url(login))
            .prefix("shop")
            .deadline(PATIENCE);
        let store = store.build().unwrap();
        take(&store, &alice(), &many()).await.unwrap();
    }
}

/// A missing permission of one user closes neither its connection nor those of other users.
#[tokio::test(flavor = "multi_thread")]
async fn missing_permission_is_reported_and_affects_no_other_call() {
    let server = Server::start();
    let may = ["on", ">pass", "~shop:*", "+@all", "-scan"];
    server.run::<String>(&[&["ACL", "SETUSER", "app"], &may[..]].concat());
    let url = server.url().replace("://", "://app:pass@");
    let store = |prefix: &str| {
        RedisStore::builder(&url)
            .prefix(prefix)
            .deadline(PATIENCE)
            .build()
    };
    let (shop, bank) = (store("shop").unwrap(), store("bank").unwrap());
    let error = take(&bank, &alice(), &many())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("on which keys"), "{error}");
    take(&shop, &alice(), &many()).await.unwrap();
    let before = client_id(&server);
    for _ in 0..20 {
        let error = shop.len().await.unwrap_err().to_string();
        assert!(error.contains("what the user is allowed"), "{error}");
        take(&shop, &alice(), &many()).await.unwrap();
    }
    assert_eq!(client_id(&server), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn full_server_is_reported_and_charges_nothing() {
    let server = Server::start();
    let store = server.store().build().unwrap();
    take(&store, &alice(), &many()).await.unwrap();
    server.run::<String>(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = take(&store, &alice(), &many()).await.unwrap_err();
    assert!(error.to_string().contains("OOM"), "{error}");
    server.run::<String>(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(look(&store, &alice(), &many()).await.used(), 1);
}

/// FLUSHALL deletes the counts and has no other effect.
#[tokio::test(flavor = "multi_thread")]
async fn store_works_after_flushall() {
    let server = Server::start();
    let store = server.store().build().unwrap();
    for used in [1, 2] {
        assert_eq!(take(&store, &alice(), &many()).await.unwrap().used(), used);
    }
    server.run::<String>(&["FLUSHALL"]);
    assert_eq!(take(&store, &alice(), &many()).await.unwrap().used(), 1);
    server.assert_that_every_key_ends();
}

/// A listener accepts connections and closes them at once. Attempts back off.
#[tokio::test(flavor = "multi_thread")]
async fn reconnects_to_a_flapping_server_back_off() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let store = RedisStore::builder(&url)
        .deadline(DEADLINE)
        .build()
        .unwrap();
    let started = Instant::now();
    let mut attempts = 0_u32;
    while started.elapsed() < Duration::from_secs(2) {
        assert!(try_take(&store).await.is_err());
        let accepted = tokio::time::timeout(Duration::from_millis(10), listener.accept()).await;
        attempts += u32::from(accepted.is_ok());
    }
    assert!(
        (3..=12).contains(&attempts),
        "{attempts} attempts in two seconds"
    );
}

/// The connection task ends with the store.
#[tokio::test(flavor = "multi_thread")]
async fn dropped_store_closes_its_connection() {
    let server = Server::start();
    let store = server.store().build().unwrap();
    take(&store, &alice(), &many()).await.unwrap();
    assert_eq!(server.run::<String>(&["CLIENT", "LIST"]).lines().count(), 2);
    // Also while a request waits for its reply.
    let answer = store.len();
    drop(store);
    answer.await.unwrap();
    let started = Instant::now();
    while server.run::<String>(&["CLIENT", "LIST"]).lines().count() > 1 {
        assert!(started.elapsed() < PATIENCE, "the connection stays");
        sleep(Duration::from_millis(5)).await;
    }
}
