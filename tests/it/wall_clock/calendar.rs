//! Calendar windows follow the wall clock, rate windows do not.

use std::sync::Arc;
use std::time::Duration;

use tollgate::store::{CircuitBreaker, DenyCache, Leased};
use tollgate::{Algorithm, Decision, Limiter, ManualClock, MemoryStore, Quota, Store, Window};

use super::{DAY, DAY_STEP, HOUR, HOUR_STEP, START, set_wall, step, wall};

/// 2025-03-15 12:00:00 UTC.
const MID_MARCH: u64 = 1_742_040_000;
/// 2025-04-01 00:00:00 UTC.
const APRIL: u64 = 1_743_465_600;
/// 2025-05-01 00:00:00 UTC.
const MAY: u64 = 1_746_057_600;

fn calendar(amount: u64, window: Window) -> Quota {
    let quota = Quota::builder(amount, window).algorithm(Algorithm::FixedWindow);
    quota.build().unwrap()
}

/// A limiter on a clock of its own, set to noon of the first day.
fn limiter(quota: Quota) -> (Limiter, ManualClock) {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(12 * HOUR));
    let limiter = Limiter::builder().quota(quota).clock(clock.clone());
    (limiter.build().unwrap(), clock)
}

fn check(limiter: &Limiter) -> Decision {
    limiter.check("alice").wait().unwrap()
}

/// Asserts that a caller is denied, and that it is admitted after exactly the wait it is given.
fn assert_wait_is_true(limiter: &Limiter, clock: &ManualClock, wait: Duration) {
    let denied = check(limiter);
    assert_eq!(denied.retry_after(), Some(wait));
    assert_eq!(denied.at(), wall(clock));
    assert_eq!(denied.reset_at(), wall(clock).saturating_add(wait));
    clock.advance(wait.saturating_sub(Duration::from_micros(1)));
    assert_eq!(
        check(limiter).retry_after(),
        Some(Duration::from_micros(1)),
        "a microsecond too early"
    );
    clock.advance(Duration::from_micros(1));
    assert!(check(limiter).is_allowed());
}

#[test]
fn forward_step_opens_the_next_day() {
    for seconds in [12 * HOUR, DAY, 40 * DAY] {
        let (limiter, clock) = limiter(calendar(1, Window::DAY));
        assert!(check(&limiter).is_allowed());
        assert!(check(&limiter).is_denied());
        step(&clock, seconds.cast_signed());
        let first = check(&limiter);
        assert!(first.is_allowed(), "{seconds}");
        assert_eq!(first.used(), 1);
        let left = DAY - (12 * HOUR + seconds) % DAY;
        assert_wait_is_true(&limiter, &clock, Duration::from_secs(left));
    }
}

#[test]
fn step_within_the_day_changes_the_wait_and_not_the_count() {
    for (seconds, left) in [(2 * HOUR_STEP, 10 * HOUR), (-2 * HOUR_STEP, 14 * HOUR)] {
        let (limiter, clock) = limiter(calendar(2, Window::DAY));
        assert!(check(&limiter).is_allowed());
        step(&clock, seconds);
        assert_eq!(check(&limiter).used(), 2);
        assert_wait_is_true(&limiter, &clock, Duration::from_secs(left));
    }
}

#[test]
fn backward_step_never_reopens_a_day() {
    let (limiter, clock) = limiter(calendar(1, Window::DAY));
    assert!(check(&limiter).is_allowed());
    // Noon of the day before. The day that is used up ends after 36 hours.
    step(&clock, -DAY_STEP);
    assert_wait_is_true(&limiter, &clock, Duration::from_secs(36 * HOUR));
    // The next midnight opens the next day, and there is no further one in between.
    assert_wait_is_true(&limiter, &clock, Duration::from_secs(DAY));
}

#[test]
fn day_that_was_opened_by_a_wrong_clock_stays_used_up() {
    let (limiter, clock) = limiter(calendar(1, Window::DAY));
    assert!(check(&limiter).is_allowed());
    step(&clock, DAY_STEP);
    assert!(check(&limiter).is_allowed(), "the second day");
    step(&clock, -DAY_STEP);
    // Back in the first day, and then in the second.
    for _ in 0..36 {
        assert!(check(&limiter).is_denied());
        clock.advance(Duration::from_secs(HOUR));
    }
    assert!(check(&limiter).is_allowed(), "the third day");
}

#[test]
fn months_follow_the_wall_clock() {
    let (limiter, clock) = limiter(calendar(1, Window::MONTH));
    set_wall(&clock, MID_MARCH);
    assert!(check(&limiter).is_allowed());
    assert!(check(&limiter).is_denied());
    set_wall(&clock, APRIL - 1);
    assert!(check(&limiter).is_denied());
    set_wall(&clock, APRIL);
    assert!(check(&limiter).is_allowed());
    // A month back: April stays used up until May, by the wall.
    set_wall(&clock, MID_MARCH);
    assert_wait_is_true(&limiter, &clock, Duration::from_secs(MAY - MID_MARCH));
}

#[test]
fn rate_windows_stay_monotonic() {
    let algorithms = [
        Algorithm::FixedWindow,
        Algorithm::SlidingWindow,
        Algorithm::SlidingBuckets,
        Algorithm::SlidingLog,
        Algorithm::TokenBucket,
    ];
    for (algorithm, seconds) in algorithms
        .into_iter()
        .flat_map(|algorithm| super::STEPS.map(|seconds| (algorithm, seconds)))
    {
        let quota = Quota::builder(1, Window::HOUR).algorithm(algorithm);
        let (limiter, clock) = limiter(quota.build().unwrap());
        assert!(check(&limiter).is_allowed());
        let before = check(&limiter).retry_after().unwrap();
        step(&clock, seconds);
        let denied = check(&limiter);
        assert_eq!(denied.retry_after(), Some(before), "{algorithm:?}");
        assert_eq!(denied.reset_at(), wall(&clock).saturating_add(before));
        clock.advance(before);
        assert!(check(&limiter).is_allowed(), "{algorithm:?} {seconds}");
    }
}

/// A sweep must not take the end of a calendar window for monotonic time.
#[test]
fn used_up_day_survives_sweeps_after_a_backward_step() {
    let (limiter, clock) = limiter(calendar(1, Window::DAY));
    assert!(check(&limiter).is_allowed());
    step(&clock, -DAY_STEP);
    // Past the end of the day by the monotonic clock, and before it by the wall clock.
    clock.advance(Duration::from_secs(20 * HOUR));
    assert_eq!(limiter.sweep().wait().unwrap(), 0);
    assert!(check(&limiter).is_denied());
    clock.advance(Duration::from_secs(16 * HOUR));
    assert_eq!(limiter.sweep().wait().unwrap(), 1);
}

#[test]
fn full_store_does_not_drop_a_used_up_day_after_a_backward_step() {
    let clock = ManualClock::new();
    let store = Arc::new(MemoryStore::builder().capacity(8).build().unwrap());
    let days = Limiter::builder()
        .quota(calendar(1, Window::DAY))
        .clock(clock.clone())
        .store(Arc::clone(&store))
        .build()
        .unwrap();
    assert!(check(&days).is_allowed());
    step(&clock, -DAY_STEP);
    clock.advance(Duration::from_secs(30 * HOUR));
    let others = Limiter::builder()
        .name("others")
        .quota("5/hour")
        .clock(clock.clone())
        .store(store)
        .build()
        .unwrap();
    for number in 0..100_u64 {
        assert!(others.check(number).wait().is_ok());
    }
    assert!(check(&days).is_denied());
}

#[test]
fn refund_is_not_taken_from_a_window_that_was_not_charged() {
    for seconds in [DAY_STEP, -DAY_STEP] {
        let (limiter, clock) = limiter(calendar(5, Window::DAY));
        let charged = limiter.check("alice").cost(2).wait().unwrap();
        clock.advance(Duration::from_secs(1));
        step(&clock, seconds);
        let used = limiter.check("alice").wait().unwrap().used();
        limiter.refund("alice", charged).wait().unwrap();
        let after = limiter.peek("alice").wait().unwrap().used();
        assert_eq!(after, used, "{seconds}");
    }
    let (limiter, clock) = limiter(calendar(5, Window::DAY));
    step(&clock, DAY_STEP);
    let charged = limiter.check("alice").cost(2).wait().unwrap();
    clock.advance(Duration::from_secs(1));
    limiter.refund("alice", charged).wait().unwrap();
    assert_eq!(limiter.remaining("alice").wait().unwrap(), 5);
}

#[tokio::test]
async fn decorators_forward_the_clock() {
    let stores: [Arc<dyn Store>; 3] = [
        Arc::new(DenyCache::new(MemoryStore::new())),
        Arc::new(CircuitBreaker::new(MemoryStore::new())),
        Arc::new(Leased::new(MemoryStore::new())),
    ];
    for store in stores {
        let clock = ManualClock::new();
        let limiter = Limiter::builder()
            .quota(calendar(2, Window::DAY))
            .clock(clock.clone())
            .store(store);
        let limiter = limiter.build().unwrap();
        for _ in 0..2 {
            assert!(limiter.check("alice").await.unwrap().is_allowed());
        }
        step(&clock, DAY_STEP);
        for is_allowed in [true, true, false] {
            let decision = limiter.check("alice").await.unwrap();
            assert_eq!(decision.is_allowed(), is_allowed);
        }
    }
}

#[test]
fn several_quotas_of_one_request_each_follow_their_clock() {
    let clock = ManualClock::new();
    let limiter = Limiter::builder()
        .quota("3/hour")
        .quota(calendar(2, Window::DAY))
        .clock(clock.clone())
        .build()
        .unwrap();
    assert!(check(&limiter).is_allowed());
    assert_eq!(check(&limiter).remaining(), 0, "of the day");
    assert_eq!(check(&limiter).binding(), Some(1));
    step(&clock, DAY_STEP);
    assert!(check(&limiter).is_allowed(), "the next day");
    let denied = check(&limiter);
    assert_eq!(denied.binding(), Some(0), "the hour goes on");
    let usages = limiter.usages("alice").wait().unwrap();
    assert_eq!(usages.at(), wall(&clock));
    let midnight = usages.usages()[1].reset_at();
    assert_eq!(midnight.as_micros(), (START + 2 * DAY) * 1_000_000);
}

#[test]
fn store_without_a_clock_counts_by_the_time_it_is_given() {
    use tollgate::{Batch, Check, Counter, Subject, Timestamp};

    let store = MemoryStore::new();
    let counter = Counter::new("api", calendar(1, Window::DAY)).unwrap();
    let subject = Subject::from("alice");
    let checks = [Check::new(&subject, &counter)];
    let batch = Batch::new(&checks).unwrap();
    let decide = |secs| {
        let usages = store.decide(&batch, Timestamp::from_secs(secs));
        usages.wait().unwrap().is_allowed()
    };
    assert!(decide(START));
    assert!(!decide(START + DAY - 1));
    assert!(decide(START + DAY));
}
