//! Events of the client.

use tollgate::ManualClock;
use tollgate::client::SendOnce;

use super::{Server, get, limit_headers, pace, send};
use crate::support::log::Log;

#[tokio::test]
async fn waits_retries_and_giving_up_are_logged() {
    let (log, _listening) = Log::listen();
    let clock = ManualClock::new();
    let layer = pace(&clock).build().unwrap();
    let secret = || super::request("GET http://api.test/items?token=hidden");

    let server = Server::new(&clock).then(429, &[("retry-after", "5")]);
    send(&layer, &server, secret(), &clock).await;
    let lines = log.about("client_rate_limit_retry");
    assert_eq!(lines.len(), 1, "{}", log.text());
    for part in [
        " INFO ",
        "host=\"api.test\"",
        "status=429",
        "attempt=1",
        "wait=5.",
    ] {
        assert!(lines[0].contains(part), "{}", lines[0]);
    }

    let server = Server::new(&clock)
        .then(200, &limit_headers("100", "0", "30"))
        .then(429, &[("retry-after", "5")]);
    send(&layer, &server, secret(), &clock).await;
    send(&layer, &server, secret().map(SendOnce::new), &clock).await;
    let lines = log.about("client_rate_limit_wait");
    assert_eq!(lines.len(), 1, "{}", log.text());
    assert!(
        lines[0].contains("DEBUG") && lines[0].contains("wait=3"),
        "{}",
        lines[0]
    );
    let lines = log.about("client_rate_limit_gave_up");
    assert_eq!(lines.len(), 1, "{}", log.text());
    for part in [
        " WARN ",
        "status=429",
        "why=\"the body cannot be sent again\"",
    ] {
        assert!(lines[0].contains(part), "{}", lines[0]);
    }
    // Paths and queries may contain secrets.
    assert!(!log.text().contains("items") && !log.text().contains("hidden"));
}

#[tokio::test]
async fn request_that_does_not_wait_logs_nothing() {
    let (log, _listening) = Log::listen();
    let clock = ManualClock::new();
    let layer = pace(&clock).build().unwrap();
    let server = Server::new(&clock).then(200, &limit_headers("100", "99", "30"));
    for _ in 0..3 {
        send(&layer, &server, get(), &clock).await;
    }
    assert_eq!(log.about("client_rate_limit"), [""; 0]);
}

/// Keys may be accounts or secrets.
#[tokio::test]
async fn keys_are_not_logged() {
    let (log, _listening) = Log::listen();
    let clock = ManualClock::new();
    let account = |_: &tollgate::RequestHead<'_>| Some("hidden account".to_owned());
    let layer = pace(&clock).key_with(account).build().unwrap();
    let server = Server::new(&clock)
        .then(429, &[("retry-after", "5")])
        .then(200, &limit_headers("100", "0", "30"))
        .then(429, &[("retry-after", "500")]);
    for _ in 0..2 {
        send(&layer, &server, get(), &clock).await;
    }
    for event in ["retry", "wait", "gave_up"] {
        let lines = log.about(&format!("client_rate_limit_{event}"));
        assert_eq!(lines.len(), 1, "{}", log.text());
        assert!(lines[0].contains("host=\"api.test\""), "{}", lines[0]);
    }
    assert!(!log.text().contains("hidden"), "{}", log.text());
}
