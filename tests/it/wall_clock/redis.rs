//! Counters in Redis after a step of this machine's wall clock.

use std::time::Duration;

use tollgate::{Algorithm, Limiter, ManualClock, Quota, Window};

use super::{DAY, DAY_STEP, START, step, wall};
use crate::redis::Server;

fn daily() -> Quota {
    let quota = Quota::builder(1, Window::DAY).algorithm(Algorithm::FixedWindow);
    quota.build().unwrap()
}

#[tokio::test]
async fn client_clock_is_the_wall_clock() {
    let server = Server::start();
    let clock = ManualClock::new();
    let store = server.store().use_client_clock().build().unwrap();
    let limiter = Limiter::builder().quota(daily()).clock(clock.clone());
    let limiter = limiter.store(store).build().unwrap();
    let check = async || limiter.check("alice").await.unwrap();
    assert!(check().await.is_allowed());
    step(&clock, DAY_STEP);
    assert!(check().await.is_allowed(), "the next day");
    let denied = check().await;
    assert_eq!(denied.at(), wall(&clock));
    assert_eq!(denied.reset_at().as_micros(), (START + 2 * DAY) * 1_000_000);
    // A day back, the second day does not reopen.
    step(&clock, -DAY_STEP);
    assert!(check().await.is_denied());
    clock.advance(Duration::from_secs(2 * DAY));
    assert!(check().await.is_allowed());
}

#[tokio::test]
async fn server_time_is_returned_unchanged() {
    let server = Server::start();
    let clock = ManualClock::new();
    let store = server.store().build().unwrap();
    let limiter = Limiter::builder().quota(daily()).clock(clock.clone());
    let limiter = limiter.store(store).build().unwrap();
    let before = limiter.check("alice").await.unwrap();
    step(&clock, DAY_STEP);
    let after = limiter.check("alice").await.unwrap();
    assert!(after.is_denied(), "the server's clock was not stepped");
    assert_eq!(after.reset_at(), before.reset_at());
    assert!(after.at().duration_since(before.at()) < Duration::from_mins(1));
}
