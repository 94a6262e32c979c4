//! Many overrides: a change costs decisions nothing, and overrides that cannot be loaded are reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use futures_util::FutureExt as _;
use tokio::time::sleep;
use tollgate::{
    Identity, Limiter, Override, RateLimitLayer, RedisStore, Store as _, StoreErrorKind,
    StoreHealth,
};

use super::{PATIENCE, Server, counter, policy_per_failure_mode, take, user};
use crate::support::clock::NEW_YEAR as NOW;
use crate::support::http::{echo, send};
use crate::support::store_ext::StoreExt as _;

/// Long enough that a busy machine causes no late replies.
const DEADLINE: Duration = Duration::from_millis(500);

fn blocked(name: &str) -> Override {
    Override::new([("user", name)], "api", "blocked").unwrap()
}

fn store(server: &Server, max: usize) -> RedisStore {
    let store = server.store().prefix("many").deadline(DEADLINE);
    store.max_overrides(max).build().unwrap()
}

/// Sets overrides through a store, many at once.
async fn set_many(store: &Arc<RedisStore>, count: usize) {
    let next = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let (store, next) = (Arc::clone(store), Arc::clone(&next));
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= count as u64 {
                        return;
                    }
                    store
                        .set_override(blocked(&format!("user-{number}")))
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Writes the hash as that many changes would have left it, without their log.
fn write_many(server: &Server, count: usize) {
    // One override that a store has written is the template of the fields.
    let script = "local key, count = KEYS[1], tonumber(ARGV[1])
        for number = 1, count do
            local line = '* - api blocked user=text:user%2D' .. number
            redis.call('HSET', key, 'field-' .. number, line)
        end
        local change = 'abc\\n- api unlimited user=text:user%2D' .. count
        redis.call('HSET', key, 'log:' .. count, change)
        redis.call('HSET', key, 'head', 'abc ' .. count .. ' ' .. count .. ' ' .. count .. ' 0 0')";
    let count = count.to_string();
    server.run::<()>(&["EVAL", script, "1", "many:v2:overrides", &count]);
}

async fn wait_for(what: &str, is_true: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(5)).await;
    }
}

fn len(store: &RedisStore) -> usize {
    store.override_list(NOW).len()
}

/// Bug: with 50,000 overrides, one change made 91 % of another process's decisions fail.
#[tokio::test(flavor = "multi_thread")]
async fn change_among_50_000_overrides_makes_no_decision_fail() {
    const COUNT: usize = 50_000;
    let server = Server::start();
    write_many(&server, COUNT);
    let (setting, deciding) = (store(&server, 100_000), Arc::new(store(&server, 100_000)));
    wait_for("all are loaded", || {
        len(&deciding) == COUNT && len(&setting) == COUNT
    })
    .await;

    let done = Arc::new(AtomicBool::new(false));
    let load = {
        let (store, done) = (Arc::clone(&deciding), Arc::clone(&done));
        tokio::spawn(async move {
            let (many, mut decided) = (counter("many", "1000000/day"), 0_u64);
            while !done.load(Ordering::SeqCst) {
                take(&store, &user("alice"), &many).await.unwrap();
                decided += 1;
                sleep(Duration::from_millis(1)).await;
            }
            decided
        })
    };
    for number in 0..3 {
        let new = blocked(&format!("new-{number}"));
        setting.set_override(new.clone()).await.unwrap();
        let has = |store: &RedisStore| store.override_list(NOW).contains(&new);
        wait_for("the other process has it", || has(&deciding)).await;
        assert!(
            setting
                .remove_override(&new.subject(), "api")
                .await
                .unwrap()
        );
        wait_for("the other process has removed it", || !has(&deciding)).await;
    }
    done.store(true, Ordering::SeqCst);
    assert!(load.await.unwrap() > 100);
    assert!(deciding.health().is_healthy());
    // The changes were read from the log. A load of all overrides takes a hundred pages.
    let scans = server.run::<String>(&["INFO", "commandstats"]);
    let scans = scans
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_hscan:calls="));
    let scans: usize = scans.unwrap().split(',').next().unwrap().parse().unwrap();
    assert!(scans <= 2 * (COUNT / 500 + 50) + 10, "{scans} pages");
}

/// A process that has missed more changes than the log contains loads all overrides.
#[tokio::test(flavor = "multi_thread")]
async fn gap_in_the_log_is_closed_by_a_load() {
    let server = Server::start();
    let setting = Arc::new(store(&server, 100_000));
    let first = blocked("first");
    setting.set_override(first.clone()).await.unwrap();
    let late = store(&server, 100_000);
    wait_for("the first one is known", || len(&late) == 1).await;
    set_many(&setting, 1_500).await;
    wait_for("all are known", || len(&late) == 1_501).await;
    // A few changes are read from the log.
    for number in 0..5 {
        let of = blocked(&format!("user-{number}"));
        assert!(setting.remove_override(&of.subject(), "api").await.unwrap());
        wait_for("it is removed", || len(&late) == 1_500 - number).await;
    }
    let log: Vec<String> = server.run(&["HKEYS", "many:v2:overrides"]);
    let log = log.iter().filter(|name| name.starts_with("log:")).count();
    assert_eq!(log, 1_000, "the log has a bounded length");
}

/// Starts a service with a rule per failure mode on this store.
fn service(store: Arc<RedisStore>) -> Router {
    let policy = policy_per_failure_mode("10/day");
    let layer = RateLimitLayer::builder(policy)
        .store(store)
        .identify_with(|head| Some(Identity::user(head.header("x-user")?)))
        .build()
        .unwrap();
    echo().layer(layer)
}

async fn statuses(app: &Router, line: &str, count: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..count {
        statuses.push(send(app, line, &[("x-user", "alice")]).await.status);
    }
    statuses
}

/// Bug: 200,000 overrides were never loaded and no error was reported, so blocked callers were admitted.
#[tokio::test(flavor = "multi_thread")]
async fn overrides_over_the_maximum_are_an_error() {
    let server = Server::start();
    write_many(&server, 200_000);
    let over = Arc::new(store(&server, 100_000));
    let why = || match over.health() {
        StoreHealth::Degraded { why, kind, .. } => Some((why.to_string(), kind)),
        _ => None,
    };
    wait_for("health names the cause", || {
        why().is_some_and(|(why, _)| why.contains("maximum"))
    })
    .await;
    let (why, kind) = why().unwrap();
    assert!(
        why.contains("more overrides than the maximum of 100000"),
        "{why}"
    );
    assert!(why.contains("max_overrides"), "{why}");
    assert_eq!(kind, StoreErrorKind::Permanent);
    // Blocked callers are unknown, so requests follow the failure mode of their rules.
    let app = service(Arc::clone(&over));
    assert_eq!(statuses(&app, "GET /deny", 3).await, [503; 3]);
    for line in ["GET /allow", "GET /local"] {
        let found = statuses(&app, line, 12).await;
        assert_eq!(found[..10], [200; 10], "{line}: {found:?}");
        assert_eq!(found[10..], [429; 2], "{line}: {found:?}");
    }
    // Counting works: no breaker has opened.
    take(&over, &user("bob"), &counter("many", "9/day"))
        .await
        .unwrap();
    let error = over.set_override(blocked("bob")).await.unwrap_err();
    assert!(error.to_string().contains("maximum of 100000"), "{error}");
    // A process with a higher maximum loads them, and can replace one at its maximum.
    let higher = store(&server, 200_000);
    wait_for("all are loaded", || len(&higher) == 200_000).await;
    assert!(higher.health().is_healthy());
    higher.set_override(blocked("bob")).await.unwrap_err();
}

/// Requests wait for the first load, so that no blocked caller is admitted before it.
#[tokio::test(flavor = "multi_thread")]
async fn first_requests_wait_for_the_overrides() {
    let server = Server::start();
    let setting = store(&server, 100_000);
    let block = |rule: &str| Override::new([("user", "alice")], rule, "blocked").unwrap();
    for rule in ["deny", "limited"] {
        setting.set_override(block(rule)).await.unwrap();
    }
    for _ in 0..10 {
        let app = service(Arc::new(store(&server, 100_000)));
        assert_eq!(statuses(&app, "GET /deny", 1).await, [429]);
        let limiter = Limiter::builder().name("limited").quota("9/day");
        let limiter = limiter.store(store(&server, 100_000)).build().unwrap();
        assert!(
            limiter
                .check([("user", "alice")])
                .await
                .unwrap()
                .is_denied()
        );
        let limiter = Limiter::builder().name("limited").quota("9/day");
        let limiter = limiter.store(store(&server, 100_000)).build().unwrap();
        assert!(
            limiter
                .reserve([("user", "alice")])
                .await
                .unwrap()
                .is_denied()
        );
    }
    // With a frozen server, requests wait for half of their deadline, then follow the failure mode.
    server.signal("STOP");
    let frozen = Arc::new(store(&server, 100_000));
    assert!(frozen.overrides().unwrap().table().is_loading());
    let app = service(Arc::clone(&frozen));
    let started = Instant::now();
    assert_eq!(statuses(&app, "GET /deny", 1).await, [503]);
    assert!(started.elapsed() >= DEADLINE / 2);
    assert!(!frozen.health().is_healthy());
    server.signal("CONT");
    wait_for("it recovers", || frozen.health().is_healthy()).await;
    assert_eq!(statuses(&app, "GET /deny", 1).await, [429]);
}

/// Bug: a request could wait one deadline for the overrides, and another one for its decision.
#[tokio::test(flavor = "multi_thread")]
async fn overrides_and_decision_share_one_deadline() {
    const LONG: Duration = Duration::from_secs(2);
    let server = Server::start();
    store(&server, 1_000)
        .set_override(blocked("bob"))
        .await
        .unwrap();
    // The overrides are readable after a while, and no decision gets a reply.
    server.run::<String>(&["CLIENT", "PAUSE", "60000", "WRITE"]);
    server.signal("STOP");
    let slow = server
        .store()
        .prefix("many")
        .deadline(LONG)
        .build()
        .unwrap();
    let app = service(Arc::new(slow));
    let started = Instant::now();
    let (found, ()) = tokio::join!(statuses(&app, "GET /deny", 1), async {
        sleep(LONG * 2 / 5).await;
        server.signal("CONT");
    });
    assert_eq!(found, [503]);
    let took = started.elapsed();
    assert!(took < LONG + Duration::from_millis(200), "{took:?}");
    server.run::<String>(&["CLIENT", "UNPAUSE"]);
}

/// Bug: each poll opened a connection before it found too many overrides.
#[tokio::test(flavor = "multi_thread")]
async fn too_many_overrides_open_no_connection_at_each_poll() {
    let server = Server::start();
    write_many(&server, 20);
    let over = store(&server, 10);
    wait_for("health names the cause", || !over.health().is_healthy()).await;
    assert_no_connections(&server).await;
}

/// Bug: a process that had loaded its overrides did so as well, if the log lacked the changes since.
#[tokio::test(flavor = "multi_thread")]
async fn too_many_missed_changes_open_no_connection_at_each_poll() {
    let server = Server::start();
    write_many(&server, 5);
    let loaded = store(&server, 10);
    wait_for("the first load is done", || len(&loaded) == 5).await;
    write_many(&server, 500);
    wait_for("health names the cause", || !loaded.health().is_healthy()).await;
    assert_eq!(len(&loaded), 5, "the last copy stays valid");
    assert_no_connections(&server).await;
}

/// Asserts that no connection is opened during several polls.
async fn assert_no_connections(server: &Server) {
    let connections = || {
        let info = server.run::<String>(&["INFO", "stats"]);
        let count = info
            .lines()
            .find_map(|line| line.strip_prefix("total_connections_received:"));
        count.unwrap().parse::<u64>().unwrap()
    };
    let before = connections();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        connections() - before,
        1,
        "only the connection of this test"
    );
}

/// Bug: nothing was charged, because the future waited for the overrides and was dropped.
#[tokio::test]
async fn dropped_record_is_charged_before_the_overrides_are_loaded() {
    let server = Server::start();
    let limiter = |store| {
        let limiter = Limiter::builder().name("used").quota("9/day");
        limiter.store(store).build().unwrap()
    };
    let loading = store(&server, 100);
    assert!(loading.overrides().unwrap().table().is_loading());
    let loading = limiter(loading);
    assert!(
        loading
            .record("alice")
            .into_future()
            .now_or_never()
            .is_none()
    );
    let other = limiter(store(&server, 100));
    let started = Instant::now();
    while other.peek("alice").await.unwrap().remaining() != 8 {
        assert!(started.elapsed() < PATIENCE, "nothing is charged");
        sleep(Duration::from_millis(5)).await;
    }
}
