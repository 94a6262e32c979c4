//! The server's clock is set back while counters are in use.
//!
//! A server that was ahead is simulated by a second store with the same prefix, which sends the instant
//! at which it charges. It writes the state that a server with that clock would have written.

use std::time::Duration;

use tokio::time::sleep;
use tollgate::{Batch, Check, Outcome, RedisStore, Store as _, Timestamp, Usage};

use super::{Server, counter, take, take_at, user};

const STEP: Duration = Duration::from_secs(8);
const DAY: u64 = 86_400;

/// A server, a store with its clock, and a store that charges at any instant.
struct Clocks {
    server: Server,
    by_server: RedisStore,
    by_caller: RedisStore,
}

impl Clocks {
    fn start() -> Self {
        let server = Server::start();
        let store = || server.store().prefix("clock");
        let by_server = store().build().unwrap();
        let by_caller = store().use_client_clock().build().unwrap();
        Self {
            server,
            by_server,
            by_caller,
        }
    }

    fn now(&self) -> Timestamp {
        self.server.time()
    }

    /// Charges `times` at an instant.
    async fn charge(&self, check: &Check<'_>, at: Timestamp, times: u64) {
        for _ in 0..times {
            let usage = take_at(&self.by_caller, check, at).await.unwrap();
            assert!(usage.is_allowed());
        }
    }
}

/// Bug: after a step back, all callers were rejected for the length of the step, and `Retry-After` was shorter.
#[tokio::test]
async fn retry_after_is_true_after_the_clock_was_set_back() {
    let clocks = Clocks::start();
    let alice = user("alice");
    let ahead = clocks.now().saturating_add(STEP);
    let quotas = [
        "5/1s, fixed-window",
        "5/1s",
        "5/1s, sliding-buckets, buckets 10",
        "5/1s, sliding-log",
        "5/1s, token-bucket",
    ];
    let waits = quotas.map(async |quota| {
        let five = counter("five", quota);
        let check = Check::new(&alice, &five);
        clocks.charge(&check, ahead, 5).await;
        // The counter continues with its count.
        let checks = [check];
        let batch = Batch::new(&checks).unwrap();
        let usages = clocks.by_server.decide(&batch, Timestamp::EPOCH);
        let usages = usages.await.unwrap();
        let (denied, at) = (usages.usages()[0], usages.at());
        assert_eq!(denied.outcome(), Outcome::Denied, "{quota}");
        assert!(at < ahead, "{quota}");
        let wait = denied.reset_at().duration_since(at);
        assert!(wait <= Duration::from_millis(1_100), "{quota}: {wait:?}");
        sleep(denied.reset_at().duration_since(clocks.now())).await;
        while clocks.now() < denied.reset_at() {
            sleep(Duration::from_millis(1)).await;
        }
        let usage = take(&clocks.by_server, &alice, &five).await.unwrap();
        assert!(usage.is_allowed(), "{quota}: {usage:?} after {wait:?}");
    });
    futures_util::future::join_all(waits).await;
    clocks.server.assert_that_every_key_ends();
}

/// A step back admits at most one additional window: counts from before the step are kept.
#[tokio::test]
async fn step_back_admits_no_fresh_window_at_once() {
    let clocks = Clocks::start();
    let (alice, ahead) = (user("alice"), clocks.now().saturating_add(STEP));
    for quota in [
        "5/hour, fixed-window",
        "5/hour",
        "5/hour, sliding-buckets",
        "5/hour, sliding-log",
        "5/hour, token-bucket",
    ] {
        let five = counter("five", quota);
        clocks.charge(&Check::new(&alice, &five), ahead, 3).await;
        let mut admitted = 0;
        for _ in 0..5 {
            let usage: Usage = take(&clocks.by_server, &alice, &five).await.unwrap();
            admitted += u64::from(usage.is_allowed());
        }
        assert_eq!(admitted, 2, "{quota}");
    }
}

/// Calendar windows wait: a step over midnight, or over the end of a month, would grant a second quota.
#[tokio::test]
async fn calendar_windows_do_not_reopen() {
    let clocks = Clocks::start();
    let alice = user("alice");
    let tomorrow = clocks.now().as_micros() / 1_000_000 / DAY + 1;
    let start = Timestamp::from_secs(tomorrow * DAY);
    let (daily, hourly) = (
        counter("daily", "2/day, fixed-window"),
        counter("hourly", "9/hour, fixed-window"),
    );
    clocks.charge(&Check::new(&alice, &daily), start, 2).await;
    // The other counter of the batch does not start the window of the next day.
    let checks = [Check::new(&alice, &hourly), Check::new(&alice, &daily)];
    let batch = Batch::new(&checks).unwrap();
    for _ in 0..2 {
        let usages = clocks.by_server.decide(&batch, Timestamp::EPOCH);
        let usages = usages.await.unwrap();
        assert!(!usages.is_allowed() && usages.at() < start);
        let [hourly, daily] = usages.usages() else {
            panic!("two usages")
        };
        assert_eq!((hourly.used(), hourly.outcome()), (0, Outcome::Allowed));
        assert!(hourly.reset_at() <= usages.at().saturating_add(Duration::from_hours(1)));
        assert_eq!((daily.used(), daily.outcome()), (2, Outcome::Denied));
        assert_eq!(daily.reset_at(), Timestamp::from_secs((tomorrow + 1) * DAY));
    }
}

/// Clocks of cluster nodes, and of a primary and its replica, differ slightly. That is not a step.
#[tokio::test]
async fn counter_that_is_less_than_a_second_ahead_is_waited_for() {
    let clocks = Clocks::start();
    let (alice, log) = (user("alice"), counter("log", "2/1s, sliding-log"));
    let check = Check::new(&alice, &log);
    let ahead = clocks.now().saturating_add(Duration::from_millis(900));
    clocks.charge(&check, ahead, 2).await;
    let usage = take(&clocks.by_server, &alice, &log).await.unwrap();
    let reset = ahead.saturating_add(Duration::from_secs(1));
    assert_eq!(
        (usage.outcome(), usage.reset_at()),
        (Outcome::Denied, reset)
    );
}

/// Only the server's clock can take a counter back, because the clocks of several callers always differ.
#[tokio::test]
async fn callers_clocks_never_take_a_counter_back() {
    let clocks = Clocks::start();
    let (alice, log) = (user("alice"), counter("log", "2/1s, sliding-log"));
    let (check, now) = (Check::new(&alice, &log), clocks.now());
    let ahead = now.saturating_add(STEP);
    clocks.charge(&check, ahead, 2).await;
    let usage = take_at(&clocks.by_caller, &check, now).await.unwrap();
    let reset = ahead.saturating_add(Duration::from_secs(1));
    assert_eq!(
        (usage.outcome(), usage.reset_at()),
        (Outcome::Denied, reset)
    );
}

/// The entries of a log stay sorted by time, over several steps.
#[tokio::test]
async fn log_stays_exact_over_several_steps() {
    let clocks = Clocks::start();
    let (alice, log) = (user("alice"), counter("log", "300/hour, sliding-log"));
    let check = Check::new(&alice, &log);
    for round in 1..=3_u64 {
        // The second charge is at the server's time, behind those before it.
        let ahead = clocks.now().saturating_add(STEP * 10);
        clocks.charge(&check, ahead, 80).await;
        let usage = take(&clocks.by_server, &alice, &log).await.unwrap();
        assert_eq!(usage.used(), round * 81);
    }
    let checks = [check];
    let batch = Batch::new(&checks).unwrap();
    let usages = clocks.by_server.decide(&batch, Timestamp::EPOCH);
    let usages = usages.await.unwrap();
    assert_eq!(usages.usages()[0].used(), 244);
    // A refund finds the entry of its charge.
    let refund = clocks
        .by_server
        .refund(&batch, usages.at(), Timestamp::EPOCH);
    refund.await.unwrap();
    let peeked = clocks
        .by_server
        .peek(&batch, Timestamp::EPOCH)
        .await
        .unwrap();
    assert_eq!(peeked.usages()[0].used(), 243);
    clocks.server.assert_that_every_key_ends();
}
