//! Pacing before a limit is reached.

use std::time::Duration;

use futures_util::FutureExt as _;
use tollgate::{Clock, ManualClock};
use tower::{Layer, ServiceExt};

use super::{Server, finish, get, limit_headers, pace, send};

/// Returns the wait of the second request after a response with these headers.
async fn wait_after(headers: &[(&str, &str)]) -> f64 {
    let clock = ManualClock::new();
    let server = Server::new(&clock).then(200, headers);
    let layer = pace(&clock).build().unwrap();
    for _ in 0..2 {
        assert_eq!(send(&layer, &server, get(), &clock).await, 200);
    }
    let arrivals = server.arrivals();
    assert_eq!(arrivals.len(), 2);
    arrivals[1] - arrivals[0]
}

#[tokio::test]
async fn requests_do_not_wait_while_enough_remains() {
    for (limit, remaining, reset) in [
        ("1000", "999", "60"),
        ("1000", "50", "60"),
        ("1000", "49", "300"),
        // Half of a small limit is enough.
        ("20", "10", "60"),
        ("5", "4", "60"),
        ("5", "2", "60"),
        // The reset is in the past.
        ("1000", "0", "0"),
        ("1000", "0", "1735689599"),
    ] {
        let wait = wait_after(&limit_headers(limit, remaining, reset)).await;
        assert!(wait < 1e-9, "{remaining} of {limit}, reset {reset}: {wait}");
    }
    assert!(wait_after(&[]).await < 1e-9);
    assert!(wait_after(&[("x-ratelimit-limit", "1000")]).await < 1e-9);
}

#[tokio::test]
async fn below_five_percent_requests_wait_for_a_reset_within_five_minutes() {
    for (remaining, reset) in [("40", 100.0), ("49", 60.0), ("1", 60.0)] {
        let wait = wait_after(&limit_headers("1000", remaining, &reset.to_string())).await;
        assert!(
            (reset..=reset + 10.1).contains(&wait),
            "{remaining}: {wait}"
        );
    }
    let wait = wait_after(&limit_headers("1000", "49", "301")).await;
    assert!(wait < 1e-9, "{wait}");
}

#[tokio::test]
async fn below_ten_requests_the_client_backs_off() {
    let wait = wait_after(&limit_headers("1000", "9", "360")).await;
    assert!((0.04..=0.16).contains(&wait), "{wait}");
    let wait = wait_after(&limit_headers("1000", "5", "360")).await;
    assert!((0.79..=2.41).contains(&wait), "{wait}");
    // Without a limit.
    let few = [("x-ratelimit-remaining", "9"), ("x-ratelimit-reset", "90")];
    let wait = wait_after(&few).await;
    assert!((0.04..=0.16).contains(&wait), "{wait}");
    // Without a reset.
    let wait = wait_after(&[("x-ratelimit-remaining", "9")]).await;
    assert!((0.04..=0.16).contains(&wait), "{wait}");
    let wait = wait_after(&[("x-ratelimit-remaining", "0")]).await;
    assert!((5.0..=15.1).contains(&wait), "{wait}");
}

/// Each caller that gave up while it waited kept its instant: none was served, and later requests waited up
/// to `max_wait`.
#[tokio::test]
async fn request_that_is_dropped_while_it_waits_delays_no_later_one() {
    let clock = ManualClock::new();
    let server = Server::new(&clock).then(200, &limit_headers("100", "4", "3000"));
    let layer = pace(&clock).build().unwrap();
    assert_eq!(send(&layer, &server, get(), &clock).await, 200);
    for _ in 0..60 {
        let response = layer.layer(server.clone()).oneshot(get());
        tokio::pin!(response);
        if (&mut response).now_or_never().is_none() {
            clock.advance(Duration::from_secs(1));
            let _ = response.now_or_never();
        }
    }
    let arrivals = server.arrivals().len();
    assert!((11..=60).contains(&arrivals), "{arrivals}");
    let before = clock.now();
    assert_eq!(send(&layer, &server, get(), &clock).await, 200);
    let waited = clock.now().duration_since(before);
    assert!(waited < Duration::from_secs(5), "{waited:?}");
}

#[tokio::test]
async fn requests_wait_for_the_reset_with_jitter_if_nothing_remains() {
    for reset in ["60", "1735689660", "1735689660000"] {
        let wait = wait_after(&limit_headers("1000", "0", reset)).await;
        assert!((60.0..=70.1).contains(&wait), "{reset}: {wait}");
    }
    let ietf = [("ratelimit", r#""default";r=0;t=60"#)];
    let wait = wait_after(&ietf).await;
    assert!((60.0..=70.1).contains(&wait), "{wait}");
}

#[tokio::test]
async fn the_latest_limits_count() {
    let clock = ManualClock::new();
    let server = Server::new(&clock)
        .then(200, &limit_headers("1000", "0", "60"))
        .then(200, &limit_headers("1000", "999", "60"));
    let layer = pace(&clock).build().unwrap();
    for _ in 0..4 {
        send(&layer, &server, get(), &clock).await;
    }
    let arrivals = server.arrivals();
    assert!(arrivals[1] >= 60.0);
    assert!(arrivals[3] - arrivals[1] < 1e-9, "{arrivals:?}");
}

#[tokio::test]
async fn slow_below_sets_the_share_at_which_pacing_begins() {
    let clock = ManualClock::new();
    let server = Server::new(&clock).then(200, &limit_headers("1000", "400", "60"));
    let layer = pace(&clock).slow_below(0.5).build().unwrap();
    for _ in 0..2 {
        send(&layer, &server, get(), &clock).await;
    }
    let wait = server.arrivals()[1];
    assert!((60.0..=70.1).contains(&wait), "{wait}");
}

/// Requests that wait for one reset are spread over a quarter of their wait.
#[tokio::test]
async fn requests_that_wait_for_one_reset_are_spread() {
    let clock = ManualClock::new();
    let server = Server::new(&clock).then(200, &limit_headers("1000", "30", "40"));
    let layer = pace(&clock).build().unwrap();
    send(&layer, &server, get(), &clock).await;
    let waiting: Vec<_> = (0..20)
        .map(|_| tokio::spawn(layer.layer(server.clone()).oneshot(get())))
        .collect();
    finish(&clock, Duration::from_millis(50), waiting).await;
    let mut arrivals = server.arrivals();
    arrivals.sort_by(f64::total_cmp);
    assert!((40.0..=50.1).contains(&arrivals[1]), "{arrivals:?}");
    assert!(arrivals[20] <= 50.1, "{arrivals:?}");
    assert!(arrivals[20] - arrivals[1] > 4.0, "{arrivals:?}");
}

/// Stripe sends its limits only with denials and without a reset. Bug: after one denial, each request
/// was delayed for ten seconds.
#[tokio::test]
async fn limits_without_a_reset_end_with_a_served_request() {
    let clock = ManualClock::new();
    let denial = [
        ("stripe-rate-limited-reason", "global-rate"),
        ("retry-after", "1"),
    ];
    let server = Server::new(&clock).then(429, &denial);
    let layer = pace(&clock).build().unwrap();
    for _ in 0..20 {
        assert_eq!(send(&layer, &server, get(), &clock).await, 200);
    }
    let arrivals = server.arrivals();
    assert_eq!(arrivals.len(), 21);
    assert!((1.0..=1.3).contains(&arrivals[1]), "{arrivals:?}");
    assert!(arrivals[20] - arrivals[1] < 1e-9, "{arrivals:?}");
    // The latest limits are still readable.
    let limits = layer.limits("api.test").unwrap();
    assert_eq!(limits.policy.as_deref(), Some("global-rate"));
}

#[tokio::test]
async fn limits_without_a_reset_expire() {
    let clock = ManualClock::new();
    let nothing = [("x-ratelimit-remaining", "0")];
    let server = Server::new(&clock).then(200, &nothing);
    let layer = pace(&clock).build().unwrap();
    send(&layer, &server, get(), &clock).await;
    clock.advance(Duration::from_secs(10));
    let started = clock.now();
    for _ in 0..5 {
        send(&layer, &server, get(), &clock).await;
    }
    assert_eq!(clock.now(), started);
}
