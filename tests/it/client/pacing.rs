//! Slower, before it is too late.

use std::time::Duration;

use tollgate::{Clock, ManualClock};
use tower::{Layer, ServiceExt};

use super::{Server, finish, get, polite, send, told};

/// How long the second request waits after the first was told this.
async fn wait_after(told: &[(&str, &str)]) -> f64 {
    let clock = ManualClock::new();
    let server = Server::new(&clock).then(200, told);
    let layer = polite(&clock).build().unwrap();
    for _ in 0..2 {
        assert_eq!(send(&layer, &server, get(), &clock).await, 200);
    }
    let arrivals = server.arrivals();
    assert_eq!(arrivals.len(), 2);
    arrivals[1] - arrivals[0]
}

#[tokio::test]
async fn nobody_waits_while_there_is_plenty() {
    for (limit, remaining, reset) in [
        ("1000", "999", "60"),
        ("1000", "50", "60"),
        ("1000", "49", "300"),
        // A tenth of a small limit is not little.
        ("20", "10", "60"),
        ("5", "4", "60"),
        ("5", "2", "60"),
        // It has been reset meanwhile.
        ("1000", "0", "0"),
        ("1000", "0", "1735689599"),
    ] {
        let wait = wait_after(&told(limit, remaining, reset)).await;
        assert!(wait < 1e-9, "{remaining} of {limit}, reset {reset}: {wait}");
    }
    assert!(wait_after(&[]).await < 1e-9);
    assert!(wait_after(&[("x-ratelimit-limit", "1000")]).await < 1e-9);
}

/// Less than 5 % of it, for less than five minutes.
#[tokio::test]
async fn the_last_of_it_is_spread_over_the_time_that_is_left() {
    let wait = wait_after(&told("1000", "40", "200")).await;
    // 5 seconds for each, half of that earlier or later.
    assert!((2.5..=7.6).contains(&wait), "{wait}");
    let wait = wait_after(&told("1000", "49", "299")).await;
    assert!((3.0..=9.2).contains(&wait), "{wait}");
}

#[tokio::test]
async fn fewer_than_ten_are_spread_however_long_that_takes() {
    let wait = wait_after(&told("1000", "9", "360")).await;
    assert!((20.0..=60.1).contains(&wait), "{wait}");
    // Nobody said of how many.
    let few = [("x-ratelimit-remaining", "9"), ("x-ratelimit-reset", "90")];
    let wait = wait_after(&few).await;
    assert!((5.0..=15.1).contains(&wait), "{wait}");
    // Nobody said until when.
    let wait = wait_after(&[("x-ratelimit-remaining", "9")]).await;
    assert!((0.04..=0.16).contains(&wait), "{wait}");
    let wait = wait_after(&[("x-ratelimit-remaining", "0")]).await;
    assert!((5.0..=15.1).contains(&wait), "{wait}");
}

#[tokio::test]
async fn with_nothing_left_it_waits_for_the_reset_and_not_to_the_instant() {
    for reset in ["60", "1735689660", "1735689660000"] {
        let wait = wait_after(&told("1000", "0", reset)).await;
        assert!((60.0..=70.1).contains(&wait), "{reset}: {wait}");
    }
    let ietf = [("ratelimit", r#""default";r=0;t=60"#)];
    let wait = wait_after(&ietf).await;
    assert!((60.0..=70.1).contains(&wait), "{wait}");
}

/// What is told about another limit changes the numbers, not what is remembered for long.
#[tokio::test]
async fn what_is_told_last_counts() {
    let clock = ManualClock::new();
    let server = Server::new(&clock)
        .then(200, &told("1000", "0", "60"))
        .then(200, &told("1000", "999", "60"));
    let layer = polite(&clock).build().unwrap();
    for _ in 0..4 {
        send(&layer, &server, get(), &clock).await;
    }
    let arrivals = server.arrivals();
    assert!(arrivals[1] >= 60.0);
    assert!(arrivals[3] - arrivals[1] < 1e-9, "{arrivals:?}");
}

#[tokio::test]
async fn a_client_may_be_more_careful() {
    let clock = ManualClock::new();
    let server = Server::new(&clock).then(200, &told("1000", "600", "60"));
    let layer = polite(&clock).slow_below(1.0).build().unwrap();
    for _ in 0..2 {
        send(&layer, &server, get(), &clock).await;
    }
    let wait = server.arrivals()[1];
    assert!((0.05..=0.16).contains(&wait), "{wait}");
}

/// When the third request came after the second, if the first two were told this.
async fn wait_after_two(first: &[(&str, &str)], second: &[(&str, &str)]) -> f64 {
    let clock = ManualClock::new();
    let server = Server::new(&clock).then(200, first).then(200, second);
    let layer = polite(&clock).build().unwrap();
    for _ in 0..3 {
        send(&layer, &server, get(), &clock).await;
    }
    let arrivals = server.arrivals();
    arrivals[2] - arrivals[1]
}

/// Twenty are gone where we sent one: what is left is not ours alone.
#[tokio::test]
async fn others_are_left_their_share() {
    let alone = wait_after_two(&told("1000", "41", "100"), &told("1000", "40", "100")).await;
    assert!((1.2..=3.8).contains(&alone), "{alone}");
    let among = wait_after_two(&told("1000", "60", "100"), &told("1000", "40", "100")).await;
    assert!((15.0..=55.0).contains(&among), "{among}");
    // Another limit says nothing about it.
    let other = wait_after_two(&told("900", "60", "100"), &told("1000", "40", "100")).await;
    assert!((1.2..=3.8).contains(&other), "{other}");
}

/// We took one, and as much is left: it comes back all the time, a thousand in a hundred seconds.
#[tokio::test]
async fn what_comes_back_all_the_time_is_not_waited_for() {
    let wait = wait_after_two(&told("1000", "40", "100"), &told("1000", "40", "98")).await;
    assert!((0.04..=0.17).contains(&wait), "{wait}");
    // What came past the reset proves nothing.
    let wait = wait_after_two(&told("1000", "0", "100"), &told("1000", "0", "100")).await;
    assert!(wait > 99.0, "{wait}");
}

/// Each of those that wait has a turn of its own.
#[tokio::test]
async fn those_who_wait_together_do_not_go_together() {
    let clock = ManualClock::new();
    let server = Server::new(&clock).then(200, &told("1000", "30", "120"));
    let layer = polite(&clock).build().unwrap();
    send(&layer, &server, get(), &clock).await;
    let waiting: Vec<_> = (0..20)
        .map(|_| tokio::spawn(layer.layer(server.clone()).oneshot(get())))
        .collect();
    finish(&clock, Duration::from_millis(50), waiting).await;
    let mut arrivals = server.arrivals();
    arrivals.sort_by(f64::total_cmp);
    let closest = arrivals.windows(2).map(|two| two[1] - two[0]);
    let closest = closest.fold(f64::MAX, f64::min);
    assert!(closest > 1.0, "{arrivals:?}");
    let last = clock.now().duration_since(ManualClock::new().now());
    assert!(last < Duration::from_secs(125), "{arrivals:?}");
}

/// Those for whom nothing was left stood in line for minutes, although there was plenty from the
/// reset on.
#[tokio::test]
async fn nobody_stands_in_line_past_the_reset() {
    let clock = ManualClock::new();
    let server = Server::new(&clock).then(200, &told("1000", "9", "30"));
    let layer = polite(&clock).build().unwrap();
    send(&layer, &server, get(), &clock).await;
    let client = layer.layer(server.clone());
    let tasks = (0..50).map(|_| tokio::spawn(client.clone().oneshot(get())));
    finish(&clock, Duration::from_millis(100), tasks.collect()).await;
    let arrivals = server.arrivals();
    assert_eq!(arrivals.len(), 51);
    let early = arrivals.iter().filter(|at| **at < 30.0).count();
    assert!((5..=18).contains(&early), "{arrivals:?}");
    // A quarter of the window later at most.
    assert!(arrivals[50] <= 38.0, "{arrivals:?}");
}

/// Stripe tells of its limits only when it denies, and not when they reset. Whoever had been denied
/// once was held back for ten seconds before each request, for ever.
#[tokio::test]
async fn what_is_told_without_a_reset_is_over_when_somebody_is_served() {
    let clock = ManualClock::new();
    let denial = [
        ("stripe-rate-limited-reason", "global-rate"),
        ("retry-after", "1"),
    ];
    let server = Server::new(&clock).then(429, &denial);
    let layer = polite(&clock).build().unwrap();
    for _ in 0..20 {
        assert_eq!(send(&layer, &server, get(), &clock).await, 200);
    }
    let arrivals = server.arrivals();
    assert_eq!(arrivals.len(), 21);
    assert!((1.0..=1.3).contains(&arrivals[1]), "{arrivals:?}");
    assert!(arrivals[20] - arrivals[1] < 1e-9, "{arrivals:?}");
    // What was told last can be read all the same.
    let told = layer.limits("api.test").unwrap();
    assert_eq!(told.policy(), Some("global-rate"));
}

/// Or when it was told so long ago that it means nothing any more.
#[tokio::test]
async fn what_is_told_without_a_reset_is_forgotten() {
    let clock = ManualClock::new();
    let nothing = [("x-ratelimit-remaining", "0")];
    let server = Server::new(&clock).then(200, &nothing);
    let layer = polite(&clock).build().unwrap();
    send(&layer, &server, get(), &clock).await;
    clock.advance(Duration::from_secs(10));
    let began = clock.now();
    for _ in 0..5 {
        send(&layer, &server, get(), &clock).await;
    }
    assert_eq!(clock.now(), began);
}
