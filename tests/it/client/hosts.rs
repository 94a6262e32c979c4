//! Limits are kept per host, for a bounded number of hosts.

use std::sync::Arc;
use std::thread;

use tollgate::ManualClock;
use tollgate::client::PaceLayer;

use super::{Server, get, limit_headers, pace, request, send};

#[tokio::test]
async fn the_last_known_limits_can_be_read() {
    let clock = ManualClock::new();
    let layer = pace(&clock).build().unwrap();
    let server = Server::new(&clock).then(200, &limit_headers("100", "99", "60"));
    assert_eq!(layer.limits("api.test"), None);
    send(&layer, &server, get(), &clock).await;
    let limits = layer.limits("API.test").unwrap();
    assert_eq!((limits.limit, limits.remaining), (Some(100), Some(99)));
    // Clones share the limits, and a response without limits changes nothing.
    send(&layer, &server, get(), &clock).await;
    assert_eq!(layer.clone().limits("api.test"), Some(limits));
    assert_eq!(layer.limits("other.test"), None);
    assert_eq!(layer.known_hosts(), 1);
}

#[tokio::test]
async fn keys_separate_limits_of_one_host() {
    let clock = ManualClock::new();
    let layer = pace(&clock)
        .key_with(|head| head.path().starts_with("/search").then(|| "search".into()))
        .build()
        .unwrap();
    let server = Server::new(&clock)
        .then(200, &limit_headers("10", "0", "60"))
        .then(200, &limit_headers("1000", "900", "60"));
    send(
        &layer,
        &server,
        request("GET http://api.test/search?q=1"),
        &clock,
    )
    .await;
    send(
        &layer,
        &server,
        request("GET http://api.test/items"),
        &clock,
    )
    .await;
    assert!(server.arrivals()[1] < 1e-9, "only `search` is exhausted");
    let search = layer.limits_of_key("api.test", "search").unwrap();
    assert_eq!(search.remaining, Some(0));
    assert_eq!(layer.limits("api.test").unwrap().remaining, Some(900));
    send(
        &layer,
        &server,
        request("GET http://api.test/search"),
        &clock,
    )
    .await;
    assert!(server.arrivals()[2] >= 60.0);
}

/// If the closure panics, the panic hook reports it and the request continues without a key.
#[tokio::test]
async fn a_key_that_panics_is_none() {
    let clock = ManualClock::new();
    let key = |_: &tollgate::RequestHead<'_>| -> Option<String> { panic!("no key") };
    let layer = pace(&clock).key_with(key).build().unwrap();
    let server = Server::new(&clock).then(200, &limit_headers("10", "9", "60"));
    assert_eq!(send(&layer, &server, get(), &clock).await, 200);
    assert!(layer.limits("api.test").is_some());
}

#[tokio::test]
async fn number_of_known_hosts_is_bounded() {
    let clock = ManualClock::new();
    let layer = pace(&clock).max_hosts(100).build().unwrap();
    for number in 0..10_000 {
        let server = Server::new(&clock).then(200, &limit_headers("10", "9", "60"));
        let line = format!("GET http://host-{number}.test/");
        send(&layer, &server, request(&line), &clock).await;
        assert!(layer.known_hosts() <= 100);
    }
    assert!(layer.known_hosts() >= 50);
}

/// Several threads send requests to the same few hosts.
#[test]
fn threads_share_known_limits() {
    let clock = ManualClock::new();
    let layer = Arc::new(pace(&clock).max_hosts(4).build().unwrap());
    thread::scope(|scope| {
        for thread in 0..8 {
            let (layer, clock) = (Arc::clone(&layer), &clock);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .build()
                    .unwrap();
                for number in 0..500 {
                    let server = Server::new(clock).then(200, &limit_headers("1000", "999", "60"));
                    let line = format!("GET http://host-{}.test/", (thread + number) % 4);
                    let status = runtime.block_on(send(&layer, &server, request(&line), clock));
                    assert_eq!(status, 200);
                }
            });
        }
    });
    assert!(layer.known_hosts() <= 4);
    for number in 0..4 {
        if let Some(limits) = layer.limits(&format!("host-{number}.test")) {
            assert_eq!(limits.remaining, Some(999));
        }
    }
}

#[test]
fn all_invalid_settings_are_reported_together() {
    let errors = PaceLayer::builder()
        .retry_budget(-0.1)
        .slow_below(f64::NAN)
        .max_hosts(0)
        .build()
        .unwrap_err();
    let fields: Vec<&str> = errors
        .iter()
        .map(tollgate::ValidationError::field)
        .collect();
    assert_eq!(fields, ["retry_budget", "slow_below", "max_hosts"]);
    let debug = format!("{:?}", PaceLayer::new());
    assert!(debug.contains("known_hosts: 0"), "{debug}");
}
