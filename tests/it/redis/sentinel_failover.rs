//! A failover of Sentinel under load, to a replica whose clock is 30 s behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tollgate::{RedisStore, Store as _};

use super::sentinel::SentinelGroup;
use super::{PATIENCE, Server, counter, take, user};

const LIMIT: u64 = 20;
const QUOTAS: [&str; 5] = [
    "20/hour, fixed-window",
    "20/hour",
    "20/hour, sliding-buckets",
    "20/hour, sliding-log",
    "20/hour, token-bucket",
];

/// Sends `count` requests of each quota to these processes in turn. Returns how many were admitted.
async fn admitted(stores: &[&RedisStore], count: usize) -> [u64; QUOTAS.len()] {
    let mut admitted = [0; QUOTAS.len()];
    for (quota, admitted) in QUOTAS.iter().zip(&mut admitted) {
        for store in stores.iter().cycle().take(count) {
            let usage = take(store, &user("alice"), &counter("counted", quota)).await;
            *admitted += u64::from(usage.unwrap().is_allowed());
        }
    }
    admitted
}

/// Sends requests to a store until `done`. Returns how many succeeded after an error.
async fn load(store: Arc<RedisStore>, done: Arc<AtomicBool>) -> u64 {
    let (many, mut errors, mut recovered) = (counter("many", "1000000/day"), 0, 0);
    while !done.load(Ordering::SeqCst) {
        match take(&store, &user("bob"), &many).await {
            Ok(_) => recovered += u64::from(errors > 0),
            Err(_) => errors += 1,
        }
        sleep(Duration::from_millis(1)).await;
    }
    recovered
}

/// Returns whether a server is the primary. Sentinels close all connections of the server they promote.
fn is_primary(server: &Server) -> bool {
    let client = redis::Client::open(server.url()).unwrap();
    let info = client
        .get_connection()
        .and_then(|mut connection| redis::cmd("INFO").query::<String>(&mut connection));
    info.is_ok_and(|info| info.contains("role:master"))
}

/// Bug: a failover to a replica whose clock is 30 s behind rejected all callers for 30 s.
#[tokio::test(flavor = "multi_thread")]
async fn failover_under_load_is_exact_and_needs_no_traffic() {
    let mut group = SentinelGroup::start_with(Server::start_with_own_clock);
    group.replica.offset_clock(-30_000);
    let (one, two) = (group.store(), group.store());
    let (busy, done) = (Arc::new(group.store()), Arc::new(AtomicBool::new(false)));
    let load = tokio::spawn(load(Arc::clone(&busy), Arc::clone(&done)));
    let before = admitted(&[&one, &two], 12).await;
    assert_eq!(before, [12; QUOTAS.len()]);
    let short = counter("short", "5/2s, sliding-log");
    while take(&one, &user("carol"), &short)
        .await
        .unwrap()
        .is_allowed()
    {}
    group.wait_until_replicated();
    let ahead = group.primary.time();
    group.primary.kill();

    // The two idle processes send no request, and still recover.
    let idle = [&one, &two];
    let started = Instant::now();
    let are_connected = || idle.iter().all(|store| store.is_connected());
    while !is_primary(&group.replica) || !are_connected() {
        assert!(started.elapsed() < PATIENCE, "no recovery");
        sleep(Duration::from_millis(5)).await;
    }
    assert!(idle.iter().all(|store| store.health().is_healthy()));
    assert!(
        group.replica.time() < ahead,
        "the clock of the new primary is behind"
    );
    let denied = take(&one, &user("carol"), &short).await.unwrap();
    let wait = denied.reset_at().duration_since(group.replica.time());
    assert!(wait <= Duration::from_secs(2), "{wait:?}");
    let after = admitted(&idle, 20).await;
    assert_eq!(after, [LIMIT - 12; QUOTAS.len()]);

    // A busy process recovers as well.
    while !busy.is_connected() {
        assert!(started.elapsed() < PATIENCE, "no recovery under load");
        sleep(Duration::from_millis(5)).await;
    }
    sleep(Duration::from_millis(100)).await;
    done.store(true, Ordering::SeqCst);
    assert!(load.await.unwrap() > 0 && busy.health().is_healthy());
    group.replica.assert_that_every_key_ends();
}
