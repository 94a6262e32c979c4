//! Slow servers and networks: requests end at their deadline, nothing is charged long after it, and
//! connections are reopened with back-off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tollgate::{Counter, RedisStore};

use super::calls::calls;
use super::proxy::Proxy;
use super::{PATIENCE, RECOVERY, Server, counter, look, take, user};

const DEADLINE: Duration = Duration::from_millis(50);
/// Additional time on a busy machine.
const SLOW_MACHINE: Duration = Duration::from_millis(1_450);
/// Maximum number of requests in flight: calls, times requests in each.
const MAX_IN_FLIGHT: u64 = 2 * 64;

fn many() -> Counter {
    counter("many", "1000000/day, fixed-window")
}

struct ProxiedServer {
    server: Server,
    proxy: Proxy,
    store: Arc<RedisStore>,
}

impl ProxiedServer {
    async fn start() -> Self {
        let server = Server::start_on_tcp();
        let proxy = Proxy::start(server.address()).await;
        let url = format!("redis://{}", proxy.address());
        let store = RedisStore::builder(&url)
            .deadline(DEADLINE)
            .build()
            .unwrap();
        let proxied = Self {
            server,
            proxy,
            store: Arc::new(store),
        };
        proxied.charge_until_success(PATIENCE).await;
        proxied
    }

    /// Charges until a request succeeds, which must happen within this time.
    async fn charge_until_success(&self, within: Duration) {
        let started = Instant::now();
        while let Err(error) = take(&self.store, &user("alice"), &many()).await {
            assert!(started.elapsed() < within, "{error}");
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Sends requests until `duration` completes, and expects that each ends in time. Returns how many were
    /// admitted, and how many got no reply.
    async fn under_load(&self, duration: impl Future<Output = ()>) -> (u64, u64) {
        let done = Arc::new(AtomicBool::new(false));
        let counts = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let load: Vec<_> = (0..32)
            .map(|_| {
                let (store, many) = (Arc::clone(&self.store), many());
                let (done, counts) = (Arc::clone(&done), Arc::clone(&counts));
                tokio::spawn(async move {
                    while !done.load(Ordering::SeqCst) {
                        let started = Instant::now();
                        let answer = take(&store, &user("bob"), &many).await;
                        let took = started.elapsed();
                        assert!(took < DEADLINE + SLOW_MACHINE, "{took:?}: {answer:?}");
                        counts[usize::from(answer.is_err())].fetch_add(1, Ordering::SeqCst);
                        sleep(Duration::from_millis(1)).await;
                    }
                })
            })
            .collect();
        duration.await;
        done.store(true, Ordering::SeqCst);
        for task in load {
            task.await.unwrap();
        }
        (
            counts[0].load(Ordering::SeqCst),
            counts[1].load(Ordering::SeqCst),
        )
    }

    /// Returns the amount that was charged under load, after all calls have arrived.
    async fn charged(&self) -> u64 {
        let direct = self.server.store().prefix("tollgate").build().unwrap();
        look(&direct, &user("bob"), &many()).await.used()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn late_replies_end_requests_at_their_deadline() {
    let proxied = ProxiedServer::start().await;
    let before = proxied.proxy.connections();
    proxied.proxy.delay(Duration::from_secs(1));
    let (admitted, unanswered) = proxied.under_load(sleep(Duration::from_secs(3))).await;
    assert!(unanswered > 0);
    let connections = proxied.proxy.connections() - before;
    assert!(
        connections <= 12,
        "{connections} connections in three seconds"
    );
    // Charges without a reply are bounded by the requests in flight of each connection.
    let unanswered_charges = proxied.charged().await - admitted;
    let bound = (connections + 1) * MAX_IN_FLIGHT;
    assert!(
        unanswered_charges <= bound,
        "{unanswered_charges} of {unanswered}, with {connections} connections"
    );
    proxied.proxy.delay(Duration::ZERO);
    proxied.charge_until_success(RECOVERY + SLOW_MACHINE).await;
    proxied.server.assert_that_every_key_ends();
}

#[tokio::test(flavor = "multi_thread")]
async fn trickling_replies_end_requests_at_their_deadline() {
    let proxied = ProxiedServer::start().await;
    let before = proxied.proxy.connections();
    proxied.server.run::<String>(&["CONFIG", "RESETSTAT"]);
    proxied.proxy.trickle(true);
    let (admitted, unanswered) = proxied.under_load(sleep(Duration::from_secs(3))).await;
    assert!(unanswered > 0);
    let connections = proxied.proxy.connections() - before;
    assert!(
        connections <= 12,
        "{connections} connections in three seconds"
    );
    // Replies are complete, but late, and each releases the next call. So there are few calls, and charges
    // without a reply are bounded by their size.
    let calls = calls(&proxied.server, "evalsha") + calls(&proxied.server, "eval");
    let unanswered_charges = proxied.charged().await - admitted;
    assert!(
        unanswered_charges <= unanswered.min(calls * 64),
        "{unanswered_charges} of {unanswered}"
    );
    assert!(calls <= 200, "{calls} calls of {unanswered} requests");
    proxied.proxy.trickle(false);
    proxied.charge_until_success(RECOVERY + SLOW_MACHINE).await;
    proxied.server.assert_that_every_key_ends();
}

/// The connection is closed ten times per second, for three seconds.
#[tokio::test(flavor = "multi_thread")]
async fn cut_connections_are_reopened_with_back_off() {
    let proxied = ProxiedServer::start().await;
    let before = proxied.proxy.connections();
    let flapping = async {
        for _ in 0..30 {
            sleep(Duration::from_millis(100)).await;
            proxied.proxy.cut();
        }
    };
    let (admitted, unanswered) = proxied.under_load(flapping).await;
    assert!(unanswered > 0);
    let connections = proxied.proxy.connections() - before;
    assert!(
        connections <= 16,
        "{connections} connections in three seconds"
    );
    let unanswered_charges = proxied.charged().await - admitted;
    let bound = (connections + 1) * MAX_IN_FLIGHT;
    assert!(
        unanswered_charges <= bound,
        "{unanswered_charges} of {unanswered}"
    );
    proxied.charge_until_success(RECOVERY + SLOW_MACHINE).await;
    proxied.server.assert_that_every_key_ends();
}
