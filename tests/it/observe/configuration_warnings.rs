//! One-time warnings about settings that do not fit the requests.

use std::time::Duration;

use tollgate::identity::ClientIp;
use tollgate::{RateLimitLayer, RateLimitLayerBuilder};

use super::Scene;
use crate::support::http::{layer, request};
use crate::support::log::Log;

const EVENT: &str = "rate_limit_configuration_warning";
const IGNORED: &str = "code=\"forwarding-header-ignored\"";
const INTERNET: &str = "code=\"trusted-proxies-cover-internet\"";

const HEADERS: [&str; 5] = [
    "x-forwarded-for",
    "forwarded",
    "x-real-ip",
    "cf-connecting-ip",
    "true-client-ip",
];

#[tokio::test]
async fn an_ignored_forwarding_header_is_reported_once() {
    for header in HEADERS {
        let (log, _listening) = Log::listen();
        let scene = Scene::new("1000/hour");
        for _ in 0..3 {
            scene
                .send(request("GET /", &[(header, "203.0.113.9")]))
                .await;
            scene.clock.advance(Duration::from_secs(2));
        }
        let warnings = log.about(EVENT);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let named = format!("`{header}`");
        for part in [" WARN ", IGNORED, &named, "trusted_proxies"] {
            assert!(warnings[0].contains(part), "{part}: {}", warnings[0]);
        }
        assert!(!warnings[0].contains("203.0.113.9"), "{}", warnings[0]);
    }
}

/// One request per second is looked at: a proxy sends the header with every request.
#[tokio::test]
async fn a_header_that_comes_later_is_reported_within_a_second() {
    let (log, _listening) = Log::listen();
    let scene = Scene::with("1000/hour", RateLimitLayerBuilder::without_statistics);
    scene.send(request("GET /", &[])).await;
    let forwarded = || request("GET /", &[("x-forwarded-for", "203.0.113.9")]);
    scene.send(forwarded()).await;
    assert_eq!(log.about(EVENT), Vec::<String>::new());
    scene.clock.advance(Duration::from_secs(1));
    scene.send(forwarded()).await;
    assert_eq!(log.about(IGNORED).len(), 1);
}

#[tokio::test]
async fn a_header_is_not_reported_if_proxies_are_trusted() {
    let (log, _listening) = Log::listen();
    let trusted = ClientIp::builder().trusted_proxies(["10.0.0.0/8"]);
    let every = ClientIp::builder().trust_all_proxies_insecure();
    for client_ip in [trusted, every] {
        let client_ip = client_ip.build().unwrap();
        let scene = Scene::with("1000/hour", |builder| builder.client_ip(client_ip));
        for header in HEADERS {
            scene
                .send(request("GET /", &[(header, "203.0.113.9")]))
                .await;
            scene.clock.advance(Duration::from_secs(2));
        }
    }
    let scene = Scene::new("1000/hour");
    scene.send(request("GET /", &[("x-request-id", "1")])).await;
    assert_eq!(log.about(EVENT), Vec::<String>::new());
}

fn trusting(networks: &[&str]) -> RateLimitLayer {
    let (builder, _) = layer("1000/hour");
    let networks = networks.iter().copied();
    builder.trusted_proxies(networks).build().unwrap()
}

#[test]
fn trusted_networks_that_cover_the_internet_are_reported() {
    for (networks, named) in [
        (&["128.0.0.0/1"][..], "128.0.0.0/1"),
        (&["10.0.0.0/8", "0.0.0.0/1", "128.0.0.0/1"], "0.0.0.0/1"),
        (&["::/1"], "::/1"),
        (&["2000::/3"], "2000::/3"),
        (&["3000::/4"], "3000::/4"),
    ] {
        let (log, _listening) = Log::listen();
        let limits = trusting(networks);
        // Once for each layer, also after a reload.
        limits.replace_policy("2000/hour").unwrap();
        let warnings = log.about(EVENT);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        for part in [" WARN ", INTERNET, named, "trusted_proxies"] {
            assert!(warnings[0].contains(part), "{part}: {}", warnings[0]);
        }
    }
}

#[test]
fn other_trusted_networks_are_not_reported() {
    let (log, _listening) = Log::listen();
    trusting(&[
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "64.0.0.0/2",
    ]);
    trusting(&["fc00::/7", "fe80::/10", "2001:db8::/32", "2600::/7", "::1"]);
    assert_eq!(log.about(EVENT), Vec::<String>::new());
}
