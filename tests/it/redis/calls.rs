//! Number of calls to Redis, and calls that must not be repeated.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tollgate::{Batch, Check, Limiter, Quota, Store as _, Subject, Timestamp};

use super::proxy::Proxy;
use super::{Server, counter, look, take, user};
use crate::support::store_ext::StoreExt as _;

/// Returns the number of calls of a command from outside of scripts.
pub(super) fn calls(server: &Server, command: &str) -> u64 {
    let statistics: String = server.run(&["INFO", "commandstats"]);
    let line = statistics
        .lines()
        .find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:")));
    let calls = line.and_then(|line| line.strip_prefix("calls="));
    let calls = calls.and_then(|line| line.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

/// Waits for this number of scripts that were sent as text. A store sends one when it has connected, to
/// check the configuration of the server.
async fn wait_for_evals(server: &Server, count: u64) {
    while calls(server, "eval") < count {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_batch_with_several_quotas_is_one_call() {
    let server = Server::start();
    let store = server.store().build().unwrap();
    let (alice, acme, all) = (
        user("alice"),
        Subject::from([("tenant", 1)]),
        Subject::all(),
    );
    let counters = [
        counter("a", "1000/day"),
        counter("b", "1000/day, token-bucket"),
        counter("c", "1000/day, sliding-log"),
        counter("d", "1000/month, fixed-window"),
        counter("e", "1000/day, sliding-buckets"),
    ];
    let checks: Vec<Check<'_>> = [&alice, &alice, &acme, &acme, &all]
        .into_iter()
        .zip(&counters)
        .map(|(subject, counter)| Check::new(subject, counter))
        .collect();
    let batch = Batch::new(&checks).unwrap();
    assert!(
        store
            .decide(&batch, Timestamp::EPOCH)
            .await
            .unwrap()
            .is_allowed()
    );
    wait_for_evals(&server, 2).await;
    server.run::<String>(&["CONFIG", "RESETSTAT"]);
    for _ in 0..100 {
        assert!(
            store
                .decide(&batch, Timestamp::EPOCH)
                .await
                .unwrap()
                .is_allowed()
        );
    }
    assert_eq!(
        (calls(&server, "evalsha"), calls(&server, "eval")),
        (100, 0)
    );
    assert_eq!(calls(&server, "script|load"), 0);
}

/// A batch without counters needs no call.
#[tokio::test]
async fn unlimited_and_blocked_need_no_call() {
    let server = Server::start();
    let store = server.store().build().unwrap();
    let alice = user("alice");
    let daily = counter("daily", "1/day");
    let (unlimited, blocked) = (Quota::unlimited(), Quota::blocked());
    let check = Check::new(&alice, &daily).with_cost(5);
    for (quota, allowed) in [(&unlimited, true), (&blocked, false)] {
        let checks = [check.with_quota(quota)];
        let batch = Batch::new(&checks).unwrap();
        let answer = store.decide(&batch, Timestamp::EPOCH);
        assert!(answer.as_ready().is_some());
        assert_eq!(answer.await.unwrap().is_allowed(), allowed);
        assert!(store.record(&batch, Timestamp::EPOCH).as_ready().is_some());
        assert!(store.peek(&batch, Timestamp::EPOCH).as_ready().is_some());
        let refund = store.refund(&batch, Timestamp::EPOCH, Timestamp::EPOCH);
        assert!(refund.as_ready().is_some());
    }
    assert!(server.keys().is_empty());
}

/// A blocked check charges neither its own counter nor the others of the batch.
#[tokio::test]
async fn blocked_check_charges_nothing_of_its_batch() {
    let server = Server::start();
    let store = server.store().build().unwrap();
    let (alice, daily) = (user("alice"), counter("daily", "9/day"));
    let (other, blocked) = (counter("other", "9/day"), Quota::blocked());
    let checks = [
        Check::new(&alice, &daily),
        Check::new(&alice, &other).with_quota(&blocked),
    ];
    let batch = Batch::new(&checks).unwrap();
    let usages = store.decide(&batch, Timestamp::EPOCH).await.unwrap();
    assert!(!usages.is_allowed());
    assert_eq!(usages.usages()[0].remaining(), 9);
    assert_eq!(look(&store, &alice, &daily).await.used(), 0);
}

#[tokio::test]
async fn scripts_are_sent_again_after_script_flush() {
    let server = Server::start();
    let store = server.store().build().unwrap();
    let (alice, nine) = (user("alice"), counter("nine", "9/day"));
    wait_for_evals(&server, 1).await;
    for used in 1..=9 {
        server.run::<String>(&["SCRIPT", "FLUSH"]);
        let usage = take(&store, &alice, &nine).await.unwrap();
        assert_eq!((usage.is_allowed(), usage.used()), (true, used));
    }
    assert_eq!(calls(&server, "eval"), 1 + 9);
}

/// A decision is sent even if its future is dropped.
#[tokio::test]
async fn dropped_future_does_not_cancel_the_decision() {
    let server = Server::start();
    let store = server.store().build().unwrap();
    let (alice, nine) = (user("alice"), counter("nine", "9/day"));
    take(&store, &alice, &nine).await.unwrap();
    let check = Check::new(&alice, &nine);
    drop(store.decide_one(&check, Timestamp::EPOCH));
    // The server has the script now, so calls keep their order. This call runs after the dropped one.
    assert_eq!(take(&store, &alice, &nine).await.unwrap().used(), 3);
}

/// The store is bound to a runtime. Threads that call it need none.
#[test]
fn threads_without_a_runtime_can_decide() {
    let server = Server::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = runtime.block_on(async { server.store().build().unwrap() });
    let limiter = Limiter::builder()
        .quota("3/day")
        .store(store)
        .build()
        .unwrap();
    let admitted = (0..5).filter(|_| limiter.check("alice").wait().unwrap().is_allowed());
    assert_eq!(admitted.count(), 3);
    // Without its runtime, a call returns an error.
    drop(runtime);
    let error = limiter.check("alice").wait().unwrap_err();
    assert!(error.to_string().contains("runtime"), "{error}");
}

#[test]
fn store_cannot_be_built_without_a_runtime() {
    let errors = tollgate::RedisStore::builder("redis://localhost")
        .build()
        .unwrap_err();
    let error = errors.iter().next().unwrap();
    assert_eq!((error.field(), error.value()), ("runtime", "none"));
    assert!(error.expected().contains("tokio"));
}

#[tokio::test]
async fn all_invalid_settings_are_reported_together() {
    let errors = tollgate::RedisStore::builder("http://localhost")
        .prefix("a b")
        .deadline(Duration::ZERO)
        .build()
        .unwrap_err();
    let paths: Vec<_> = errors.iter().filter_map(|error| error.path()).collect();
    assert_eq!(paths, ["url", "prefix", "deadline"]);
    assert!(errors.to_string().contains("redis://"), "{errors}");

    let too_long = tollgate::RedisStore::builder("redis://localhost").deadline(Duration::MAX);
    let errors = too_long.connect().unwrap_err();
    assert_eq!(errors.iter().next().unwrap().field(), "redis deadline");
}

/// The server charges and replies, and the reply is lost. The call is charged once, returns an error,
/// and is not repeated.
#[tokio::test]
async fn call_with_a_lost_reply_is_not_repeated() {
    let server = Server::start_on_tcp();
    let proxy = Proxy::start(server.address()).await;
    let store = tollgate::RedisStore::builder(&format!("redis://{}", proxy.address()))
        .deadline(Duration::from_secs(10))
        .build()
        .unwrap();
    let (alice, daily) = (user("alice"), counter("daily", "100/day"));
    for round in 1..=5 {
        // Loads the script of the test, so that the next reply is not NOSCRIPT.
        assert!(charge_until_reconnected(&store, &alice).await);
        proxy.lose_reply_to_next_decision();
        let error = take(&store, &alice, &daily).await.unwrap_err();
        assert!(error.to_string().contains("was lost"), "{error}");
        let direct = server.store().prefix("tollgate").build().unwrap();
        assert_eq!(look(&direct, &alice, &daily).await.used(), round);
    }
}

/// Charges another counter until the connection is open again.
async fn charge_until_reconnected(store: &tollgate::RedisStore, subject: &Subject<'_>) -> bool {
    let other = counter("other", "1000000/day");
    for _ in 0..500 {
        if take(store, subject, &other).await.is_ok() {
            return true;
        }
        sleep(Duration::from_millis(10)).await;
    }
    false
}

/// Concurrent requests share one connection, and each gets its own reply.
#[tokio::test(flavor = "multi_thread")]
async fn replies_are_not_mixed_up() {
    let server = Server::start();
    let store = Arc::new(server.store().build().unwrap());
    let tasks: Vec<_> = (1..=200_u64)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let (subject, mine) = (Subject::from(number), counter("mine", "1000/day"));
                let check = Check::new(&subject, &mine).with_cost(number);
                let usage = store.decide_one(&check, Timestamp::EPOCH).await.unwrap().0;
                assert_eq!(usage.used(), number);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(store.len().await.unwrap(), 200);
}
