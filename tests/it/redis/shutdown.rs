//! Shutdown of a process: what other processes find afterwards.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use tollgate::store::{DenyCache, Leased};
use tollgate::{Batch, Check, Limiter, RateLimitLayer, RedisStore, Store, Timestamp};

use super::{PATIENCE, Server, counter, look, take, user};

fn store(server: &Server) -> RedisStore {
    server.store().prefix("fleet").build().unwrap()
}

fn limiter(store: impl Store) -> Limiter {
    let limiter = Limiter::builder().name("shared").quota("100/day");
    limiter.store(store).build().unwrap()
}

/// Returns what all processes have used.
async fn used(other: &Limiter) -> u64 {
    other.peek("hot").cost(0).await.unwrap().used()
}

#[tokio::test]
async fn after_shutdown_another_process_can_use_the_whole_limit() {
    let server = Server::start();
    // As deep as a stack of stores gets: every decorator forwards the shutdown.
    let leased = DenyCache::new(Leased::new(store(&server)));
    let (one, other) = (limiter(leased), limiter(store(&server)));
    let mut admitted = 0;
    while used(&other).await <= admitted {
        assert!(one.check("hot").await.unwrap().is_allowed());
        admitted += 1;
    }
    one.shutdown(PATIENCE).await.unwrap();
    assert_eq!(used(&other).await, admitted);
    // The limiter still decides, and charges nothing in advance.
    for _ in 0..10 {
        assert!(one.check("hot").await.unwrap().is_allowed());
        admitted += 1;
        assert_eq!(used(&other).await, admitted);
    }
    while other.check("hot").await.unwrap().is_allowed() {
        admitted += 1;
    }
    assert_eq!(admitted, 100);
}

#[tokio::test]
async fn shutdown_waits_for_refunds_whose_future_was_dropped() {
    let server = Server::start();
    let one = store(&server);
    let (subject, quota) = (user("ada"), counter("rule", "100/day, fixed-window"));
    for _ in 0..50 {
        assert!(take(&one, &subject, &quota).await.unwrap().is_allowed());
    }
    let charged_at = server.time();
    server.signal("STOP");
    let check = Check::new(&subject, &quota);
    let batch = Batch::new(std::slice::from_ref(&check)).unwrap();
    for _ in 0..50 {
        drop(one.refund(&batch, charged_at, Timestamp::EPOCH));
    }
    let mut shutdown = one.shutdown();
    let early = timeout(Duration::from_millis(100), &mut shutdown).await;
    assert!(early.is_err(), "the server has replied to no refund");
    server.signal("CONT");
    timeout(PATIENCE, shutdown).await.unwrap().unwrap();
    assert_eq!(look(&store(&server), &subject, &quota).await.used(), 0);
}

#[tokio::test]
async fn shutdown_of_a_server_that_does_not_reply_ends_at_the_deadline() {
    const DEADLINE: Duration = Duration::from_millis(200);
    let server = Server::start();
    let leased = std::sync::Arc::new(Leased::new(store(&server)));
    let one = limiter(std::sync::Arc::clone(&leased));
    let layer = RateLimitLayer::builder("100/day").store(leased);
    let layer = layer.build().unwrap();
    for _ in 0..20 {
        assert!(one.check("hot").await.unwrap().is_allowed());
    }
    server.signal("STOP");
    let started = Instant::now();
    for ended in [one.shutdown(DEADLINE).await, layer.shutdown(DEADLINE).await] {
        let error = ended.unwrap_err().to_string();
        assert!(error.contains("not shut down within 200ms"), "{error}");
    }
    // Each reply has 30 seconds.
    assert!(started.elapsed() < PATIENCE / 2);
    server.signal("CONT");
}
