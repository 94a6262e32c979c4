//! The stack of `RedisStore::connect` below a layer, on real sockets, while Redis fails and recovers.
//! In the default mode no request gets a 5xx or a wrong 429, and limits hold throughout.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tollgate::policy::{OnStoreFailure, Policy, Rule};
use tollgate::store::contract;
use tollgate::{RateLimitLayer, Store, StoreErrorKind, StoreHealth};

use crate::redis::Server;
use crate::support::http::{Answer, echo};
use crate::support::sockets::{Client, Version, serve};

/// Upper bound for any operation on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Limit of every caller. No test reaches it.
const MANY: u64 = 100_000;

#[tokio::test(flavor = "multi_thread")]
async fn the_stack_over_redis_keeps_the_contract() {
    let server = Server::start();
    let new = async || server.store().use_client_clock().connect().unwrap();
    contract::verify(new).await;
    server.assert_that_every_key_ends();
}

/// A service with limits, and its client.
struct Service {
    store: Arc<dyn Store>,
    client: Arc<Client>,
}

impl Service {
    async fn start(server: &Server) -> Self {
        Self::on(
            server
                .store()
                .deadline(Duration::from_millis(50))
                .connect()
                .unwrap(),
        )
        .await
    }

    async fn on(store: Arc<dyn Store>) -> Self {
        let tight = Rule::new("5/day, fixed-window").name("tight").global(false);
        let login = Rule::new("1000/day")
            .on_store_failure(OnStoreFailure::Deny)
            .global(false);
        let policy = Policy::builder()
            .everyone(format!("{MANY}/day, fixed-window").as_str())
            .endpoint("GET /tight", tight)
            .endpoint("GET /login", login);
        let limits = RateLimitLayer::builder(policy)
            .store(Arc::clone(&store))
            .build()
            .unwrap();
        let address = serve(echo().layer(limits)).await;
        let client = Arc::new(Client::new(Version::Http1, address));
        Self { store, client }
    }

    /// Sends a request that must be allowed. Returns `x-ratelimit-remaining`.
    async fn get(&self) -> u64 {
        let answer = self.client.send("GET /", &[]).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.number("x-ratelimit-remaining")
    }

    async fn tight(&self) -> Answer {
        self.client.send("GET /tight", &[]).await
    }

    /// Sends requests, all of which must be allowed, until the store reports this health.
    async fn send_until_health(&self, healthy: bool) {
        let started = Instant::now();
        while self.store.health().is_healthy() != healthy {
            self.get().await;
            assert!(started.elapsed() < PATIENCE, "{:?}", self.store.health());
            sleep(Duration::from_millis(5)).await;
        }
        if !healthy {
            // A few more failures open the breaker.
            for _ in 0..3 {
                self.get().await;
            }
        }
    }

    /// Sends requests until one was counted in Redis.
    async fn send_until_counted_in_redis(&self, server: &Server) {
        self.send_until_health(true).await;
        let started = Instant::now();
        while server.keys().is_empty() {
            self.get().await;
            assert!(
                started.elapsed() < PATIENCE,
                "no request is counted in Redis"
            );
            sleep(Duration::from_millis(5)).await;
        }
    }

    fn cause(&self) -> (StoreErrorKind, String) {
        match self.store.health() {
            StoreHealth::Degraded { why, kind, .. } => (kind, why.to_string()),
            other => panic!("the store is {other:?}"),
        }
    }

    /// Asserts that this process enforces limits without the store.
    async fn assert_that_limits_hold_locally(&self) {
        for left in (0..5).rev() {
            let answer = self.tight().await;
            assert_eq!(
                (answer.status, answer.number("x-ratelimit-remaining")),
                (200, left)
            );
        }
        assert_eq!(self.tight().await.status, 429);
        let login = self.client.send("GET /login", &[]).await;
        assert_eq!(login.status, 503);
        assert_eq!(login.json()["error"]["code"], "RATE_LIMIT_UNAVAILABLE");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn service_can_start_before_redis() {
    let mut server = Server::absent(&[]);
    let service = Service::start(&server).await;
    service.send_until_health(false).await;
    assert_eq!(service.cause().0, StoreErrorKind::Unavailable);
    service.assert_that_limits_hold_locally().await;
    server.launch();
    service.send_until_counted_in_redis(&server).await;
    // Local counts of the outage are not transferred to Redis.
    assert_eq!(service.tight().await.number("x-ratelimit-remaining"), 4);
    server.assert_that_every_key_ends();
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_while_redis_is_killed_under_load() {
    let mut server = Server::start();
    let service = Arc::new(Service::start(&server).await);
    service.send_until_counted_in_redis(&server).await;
    for _ in 0..2 {
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let load: Vec<_> = (0..8)
            .map(|_| {
                let (service, stopped) = (Arc::clone(&service), stopped.clone());
                tokio::spawn(async move {
                    while !*stopped.borrow() {
                        service.get().await;
                    }
                })
            })
            .collect();
        sleep(Duration::from_millis(50)).await;
        server.kill();
        service.send_until_health(false).await;
        server.launch();
        service.send_until_counted_in_redis(&server).await;
        stop.send(true).unwrap();
        for task in load {
            task.await.unwrap();
        }
    }
    server.assert_that_every_key_ends();
}

/// The server accepts connections and does not reply.
#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_while_redis_hangs() {
    let server = Server::start();
    let service = Service::start(&server).await;
    service.send_until_counted_in_redis(&server).await;
    server.signal("STOP");
    service.send_until_health(false).await;
    service.assert_that_limits_hold_locally().await;
    // The breaker is open, so no request waits for the deadline.
    let since = Instant::now();
    for _ in 0..200 {
        service.get().await;
    }
    assert!(since.elapsed() < 200 * Duration::from_millis(50) / 2);
    server.signal("CONT");
    service.send_until_counted_in_redis(&server).await;
    // Requests of the outage are not sent later. Only probes were sent, and charged when the server resumed.
    let left = service.tight().await.number("x-ratelimit-remaining");
    assert!((2..=4).contains(&left), "{left} of 5 are left");
}

#[tokio::test(flavor = "multi_thread")]
async fn service_follows_repeated_outages() {
    let mut server = Server::start();
    let service = Service::start(&server).await;
    for _ in 0..5 {
        service.send_until_counted_in_redis(&server).await;
        server.kill();
        service.send_until_health(false).await;
        server.launch();
    }
    service.send_until_counted_in_redis(&server).await;
    server.assert_that_every_key_ends();
}

/// The service falls back to local limits and reports the cause. Every request is counted.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_password_falls_back_to_local_limits() {
    let server = Server::start_with(&["--requirepass", "right"]);
    let url = server.url().replace("://", "://:wrong@");
    let store = tollgate::RedisStore::connect(&url).unwrap();
    let service = Service::on(store).await;
    service.send_until_health(false).await;
    let (kind, cause) = service.cause();
    assert_eq!(kind, StoreErrorKind::Permanent);
    assert!(cause.contains("check user and password"), "{cause}");
    assert!(
        !format!("{cause} {:?}", service.store).contains("wrong"),
        "{cause}"
    );
    service.assert_that_limits_hold_locally().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_while_redis_is_out_of_memory() {
    let server = Server::start();
    let service = Service::start(&server).await;
    service.send_until_counted_in_redis(&server).await;
    server.run::<String>(&["CONFIG", "SET", "maxmemory", "1"]);
    service.send_until_health(false).await;
    let (kind, cause) = service.cause();
    assert_eq!(kind, StoreErrorKind::Exhausted);
    assert!(cause.contains("OOM"), "{cause}");
    service.assert_that_limits_hold_locally().await;
    server.run::<String>(&["CONFIG", "SET", "maxmemory", "0"]);
    service.send_until_counted_in_redis(&server).await;
}

/// `FLUSHALL` deletes the counters. Cached denials expire within a second.
#[tokio::test(flavor = "multi_thread")]
async fn cached_denials_expire_after_flushall() {
    let server = Server::start();
    let service = Service::start(&server).await;
    service.send_until_counted_in_redis(&server).await;
    for status in [200, 200, 200, 200, 200, 429, 429] {
        assert_eq!(service.tight().await.status, status);
    }
    server.run::<String>(&["FLUSHALL"]);
    let started = Instant::now();
    while service.tight().await.status == 429 {
        assert!(started.elapsed() < PATIENCE, "the denial does not expire");
        sleep(Duration::from_millis(20)).await;
    }
    assert!(service.store.health().is_healthy());
}

/// Repeated denials are served from the deny cache. Redis is called about once a second.
#[tokio::test(flavor = "multi_thread")]
async fn repeated_denials_do_not_reach_redis() {
    let server = Server::start();
    let service = Service::start(&server).await;
    service.send_until_counted_in_redis(&server).await;
    for _ in 0..5 {
        assert_eq!(service.tight().await.status, 200);
    }
    let scripts = || -> u64 {
        let text: String = server.run(&["INFO", "commandstats"]);
        let calls = text.lines().filter(|line| line.starts_with("cmdstat_eval"));
        let calls = calls.filter_map(|line| line.split("calls=").nth(1)?.split(',').next());
        calls.map(|calls| calls.parse::<u64>().unwrap()).sum()
    };
    let (before, started) = (scripts(), Instant::now());
    for _ in 0..500 {
        assert_eq!(service.tight().await.status, 429);
    }
    let allowed = 2 + started.elapsed().as_secs();
    let calls = scripts() - before;
    assert!(calls <= allowed, "{calls} scripts for 500 denials");
}
