//! A server that rejects writes because its memory or its disk is full. Callers can cause this, so
//! no rule admits uncounted requests.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use tokio::time::sleep;
use tollgate::{Identity, RateLimitLayer, Store, StoreErrorKind, StoreHealth};

use super::{PATIENCE, Server, policy_per_failure_mode};
use crate::support::http::{echo, send};
use crate::support::log::Log;

/// A service that limits each caller to 10 requests a day, under a rule per failure mode.
fn service(server: &Server) -> (Router, Arc<dyn Store>) {
    let policy = policy_per_failure_mode("10/day, fixed-window").local_share(1.0);
    let store = server.store().connect().unwrap();
    let layer = RateLimitLayer::builder(policy)
        .store(Arc::clone(&store))
        .identify_with(|head| Some(Identity::user(head.header("x-user")?)))
        .build()
        .unwrap();
    (echo().layer(layer), store)
}

async fn statuses(app: &Router, line: &str, caller: &str, count: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..count {
        statuses.push(send(app, line, &[("x-user", caller)]).await.status);
    }
    statuses
}

/// Asserts that `allow` counts in this process and `deny` rejects while the server rejects writes. One
/// event per second contains the cause.
async fn assert_counted_locally(app: &Router, store: &Arc<dyn Store>, log: &Log, cause: &[&str]) {
    let started = Instant::now();
    let admitted = statuses(app, "GET /allow", "mallory", 30).await;
    assert_eq!(admitted[..10], [200; 10], "{admitted:?}");
    assert_eq!(admitted[10..], [429; 20], "{admitted:?}");
    assert_eq!(statuses(app, "GET /deny", "mallory", 3).await, [503; 3]);
    let events = log.about("rate_limit_store_failed");
    let most = started.elapsed().as_secs() + 1;
    assert!((1..=most).contains(&(events.len() as u64)), "{events:?}");
    assert!(events[0].contains(r#"kind="exhausted""#), "{events:?}");
    for part in cause {
        assert!(events[0].contains(part), "{part}: {events:?}");
    }
    let StoreHealth::Degraded { why, kind, .. } = store.health() else {
        panic!("a full server is not healthy");
    };
    assert_eq!(kind, StoreErrorKind::Exhausted);
    assert!(cause.iter().all(|part| why.contains(part)), "{why}");
}

/// Writes values of the size of counters until the server has no memory left.
fn fill(server: &Server) {
    let mut connection = server.connect();
    let mut set = |number: u64| {
        let mut command = redis::cmd("SET");
        let command = command.arg(format!("counter:{number}")).arg("x".repeat(24));
        command.exec(&mut connection)
    };
    let rejected = (0..100_000).find_map(|number| set(number).err());
    assert_eq!(rejected.unwrap().code(), Some("OOM"));
    // The buffers of connections change in size. Without this, a counter sometimes fits in.
    server.run::<String>(&["CONFIG", "SET", "maxmemory", "3900kb"]);
}

#[tokio::test]
async fn full_memory_lets_no_request_pass_uncounted() {
    let (log, _listening) = Log::listen();
    let server = Server::start_with(&["--maxmemory", "4mb", "--maxmemory-policy", "noeviction"]);
    let (app, store) = service(&server);
    assert_eq!(statuses(&app, "GET /allow", "alice", 3).await, [200; 3]);
    fill(&server);
    assert_counted_locally(&app, &store, &log, &["OOM", "maxmemory"]).await;
    // Counters in Redis were not changed meanwhile.
    server.run::<String>(&["CONFIG", "SET", "maxmemory", "0"]);
    let admitted = statuses(&app, "GET /allow", "alice", 9).await;
    assert_eq!(admitted, [200, 200, 200, 200, 200, 200, 200, 429, 429]);
    assert!(store.health().is_healthy());
}

#[tokio::test]
async fn failed_persistence_lets_no_request_pass_uncounted() {
    let (log, _listening) = Log::listen();
    let server = Server::start_with(&["--dbfilename", "occupied"]);
    let (app, store) = service(&server);
    assert_eq!(statuses(&app, "GET /allow", "alice", 3).await, [200; 3]);
    // A file cannot replace a directory that is not empty, even as root.
    fs::create_dir_all(server.directory().join("occupied/by")).unwrap();
    server.run::<String>(&["CONFIG", "SET", "save", "1000000 1000000"]);
    server.run::<String>(&["BGSAVE"]);
    let started = Instant::now();
    let failed = || {
        let info: String = server.run(&["INFO", "persistence"]);
        info.contains("rdb_last_bgsave_status:err")
    };
    while !failed() {
        assert!(started.elapsed() < PATIENCE, "the server saves its data");
        sleep(Duration::from_millis(10)).await;
    }
    let cause = ["MISCONF", "check the disk"];
    assert_counted_locally(&app, &store, &log, &cause).await;
}
