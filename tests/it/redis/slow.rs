//! Slow servers and networks: no request waits for longer than the
//! deadline, no charge is made long after, and connections are opened with back-off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tollgate::{Counter, RedisStore};

use super::calls::calls;
use super::proxy::Proxy;
use super::{PATIENCE, RECOVERY, Server, counter, look, take, user};

const DEADLINE: Duration = Duration::from_millis(50);
/// What a busy machine may add to that.
const SLOW_MACHINE: Duration = Duration::from_millis(1_450);
/// Calls that may be under way, and requests in each.
const UNDER_WAY: u64 = 2 * 64;

fn many() -> Counter {
    counter("many", "1000000/day, fixed-window")
}

struct Scene {
    server: Server,
    proxy: Proxy,
    store: Arc<RedisStore>,
}

impl Scene {
    async fn set() -> Self {
        let server = Server::start_on_tcp();
        let proxy = Proxy::start(server.address()).await;
        let url = format!("redis://{}", proxy.address());
        let store = RedisStore::builder(&url)
            .deadline(DEADLINE)
            .build()
            .unwrap();
        let scene = Self {
            server,
            proxy,
            store: Arc::new(store),
        };
        scene.is_back(PATIENCE).await;
        scene
    }

    /// Takes until that works, which must not take longer than this.
    async fn is_back(&self, within: Duration) {
        let started = Instant::now();
        while let Err(error) = take(&self.store, &user("alice"), &many()).await {
            assert!(started.elapsed() < within, "{error}");
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Sends requests until `goes_on` completes. Each ends in time. Returns how many were admitted, and
    /// how many got no reply.
    async fn under_load(&self, goes_on: impl Future<Output = ()>) -> (u64, u64) {
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
        goes_on.await;
        done.store(true, Ordering::SeqCst);
        for task in load {
            task.await.unwrap();
        }
        (
            counts[0].load(Ordering::SeqCst),
            counts[1].load(Ordering::SeqCst),
        )
    }

    /// Returns what was charged under load, after all calls have arrived.
    async fn charged(&self) -> u64 {
        let direct = self.server.store().prefix("tollgate").build().unwrap();
        look(&direct, &user("bob"), &many()).await.used()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn late_replies_end_requests_at_their_deadline() {
    let scene = Scene::set().await;
    let before = scene.proxy.connections();
    scene.proxy.delay(Duration::from_secs(1));
    let (admitted, unanswered) = scene.under_load(sleep(Duration::from_secs(3))).await;
    assert!(unanswered > 0);
    let connections = scene.proxy.connections() - before;
    assert!(
        connections <= 12,
        "{connections} connections in three seconds"
    );
    // What was charged in vain fits into the calls that each connection had under way.
    let unanswered_charges = scene.charged().await - admitted;
    let bound = (connections + 1) * UNDER_WAY;
    assert!(
        unanswered_charges <= bound,
        "{unanswered_charges} of {unanswered}, with {connections} connections"
    );
    scene.proxy.delay(Duration::ZERO);
    scene.is_back(RECOVERY + SLOW_MACHINE).await;
    scene.server.assert_that_every_key_ends();
}

#[tokio::test(flavor = "multi_thread")]
async fn trickling_replies_end_requests_at_their_deadline() {
    let scene = Scene::set().await;
    let before = scene.proxy.connections();
    scene.server.run::<String>(&["CONFIG", "RESETSTAT"]);
    scene.proxy.trickle(true);
    let (admitted, unanswered) = scene.under_load(sleep(Duration::from_secs(3))).await;
    assert!(unanswered > 0);
    let connections = scene.proxy.connections() - before;
    assert!(
        connections <= 12,
        "{connections} connections in three seconds"
    );
    // Whole answers come through, but late, and the next call goes out for each. So only a few do,
    // and what they charge in vain is no more than they can hold.
    let calls = calls(&scene.server, "evalsha") + calls(&scene.server, "eval");
    let unanswered_charges = scene.charged().await - admitted;
    assert!(
        unanswered_charges <= unanswered.min(calls * 64),
        "{unanswered_charges} of {unanswered}"
    );
    assert!(calls <= 200, "{calls} calls of {unanswered} requests");
    scene.proxy.trickle(false);
    scene.is_back(RECOVERY + SLOW_MACHINE).await;
    scene.server.assert_that_every_key_ends();
}

/// The connection is cut ten times in a second, for three seconds.
#[tokio::test(flavor = "multi_thread")]
async fn cut_connections_are_reopened_with_back_off() {
    let scene = Scene::set().await;
    let before = scene.proxy.connections();
    let flapping = async {
        for _ in 0..30 {
            sleep(Duration::from_millis(100)).await;
            scene.proxy.cut();
        }
    };
    let (admitted, unanswered) = scene.under_load(flapping).await;
    assert!(unanswered > 0);
    let connections = scene.proxy.connections() - before;
    assert!(
        connections <= 16,
        "{connections} connections in three seconds"
    );
    let unanswered_charges = scene.charged().await - admitted;
    let bound = (connections + 1) * UNDER_WAY;
    assert!(
        unanswered_charges <= bound,
        "{unanswered_charges} of {unanswered}"
    );
    scene.is_back(RECOVERY + SLOW_MACHINE).await;
    scene.server.assert_that_every_key_ends();
}
