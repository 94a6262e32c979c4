//! Many overrides: a change costs decisions nothing, and what cannot be loaded is reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
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
    // One real override shows the form of a field.
    let script = "local key, count = KEYS[1], tonumber(ARGV[1])
        for number = 1, count do
            local line = '* - api blocked user=text:user%2D' .. number
            redis.call('HSET', key, 'field-' .. number, line)
        end
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

/// With 50,000 overrides, one change made 91 % of another process's decisions fail.
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
    // The changes were read from the log: loading all takes a hundred pages.
    let scans = server.run::<String>(&["INFO", "commandstats"]);
    let scans = scans
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_hscan:calls="));
    let scans: usize = scans.unwrap().split(',').next().unwrap().parse().unwrap();
    assert!(scans <= 2 * (COUNT / 500 + 50) + 10, "{scans} pages");
}

/// A process that has missed more changes than the log has reads all of them.
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
    // Changes in small steps are followed, too.
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

/// 200,000 overrides were never loaded, and nothing said so: blocked callers were free.
#[tokio::test(flavor = "multi_thread")]
async fn overrides_over_the_maximum_are_a_clear_error() {
    let server = Server::start();
    write_many(&server, 120_000);
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
    // It is unknown who is blocked: requests follow the failure mode of their rules.
    let app = service(Arc::clone(&over));
    assert_eq!(statuses(&app, "GET /deny", 3).await, [503; 3]);
    for line in ["GET /allow", "GET /local"] {
        let found = statuses(&app, line, 12).await;
        assert_eq!(found[..10], [200; 10], "{line}: {found:?}");
        assert_eq!(found[10..], [429; 2], "{line}: {found:?}");
    }
    // Counting itself works: no breaker has opened.
    take(&over, &user("bob"), &counter("many", "9/day"))
        .await
        .unwrap();
    let error = over.set_override(blocked("bob")).await.unwrap_err();
    assert!(error.to_string().contains("maximum of 100000"), "{error}");
    // A process with a higher maximum loads them, and may replace one at its maximum.
    let higher = store(&server, 120_000);
    wait_for("all are loaded", || len(&higher) == 120_000).await;
    assert!(higher.health().is_healthy());
    higher.set_override(blocked("bob")).await.unwrap_err();
}

/// Until the first load is done, requests wait: a blocked caller is not admitted in between.
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
    // A frozen server: they wait until their deadline, then follow the failure mode.
    server.signal("STOP");
    let frozen = Arc::new(store(&server, 100_000));
    assert!(frozen.overrides().unwrap().table().is_loading());
    let app = service(Arc::clone(&frozen));
    let started = Instant::now();
    assert_eq!(statuses(&app, "GET /deny", 1).await, [503]);
    assert!(started.elapsed() >= DEADLINE);
    assert!(!frozen.health().is_healthy());
    server.signal("CONT");
    wait_for("it recovers", || frozen.health().is_healthy()).await;
    assert_eq!(statuses(&app, "GET /deny", 1).await, [429]);
}
