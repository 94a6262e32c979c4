//! The layer around hyper, with nothing else in between.

use super::process::Example;
use crate::support::sockets::{Client, VERSIONS, addresses};

#[tokio::test]
async fn both_versions_of_http_are_limited_by_route() {
    for version in VERSIONS {
        let example = Example::start("hyper_server", &[]).await;
        let client = Client::new(version, example.address());
        let head = client.send("HEAD /items/5", &[]).await;
        assert_eq!(head.number("x-ratelimit-remaining"), 4);
        for left in [3, 2, 1, 0] {
            let item = client.send(&format!("GET /items/{left}"), &[]).await;
            assert_eq!(item.status, 200);
            assert_eq!(item.body, format!("item {left}\n"));
            assert_eq!(item.header("x-ratelimit-policy"), Some("ip:items:1m"));
            assert_eq!(item.number("x-ratelimit-limit"), 5);
            assert_eq!(item.number("x-ratelimit-remaining"), left);
        }
        // Other spellings of the path and of the method are the same route.
        for line in ["GET /items/9", "GET /items/%39?x", "HEAD /items/9"] {
            let denied = client.send(line, &[]).await;
            assert_eq!(denied.status, 429, "{version:?} {line}");
            assert!(denied.number("retry-after") > 0);
        }
        let denied = client
            .send("GET /items/9", &[("x-request-id", "r-1")])
            .await;
        assert_eq!(denied.header("x-ratelimit-remaining"), Some("0"));
        assert_eq!(denied.header("content-type"), Some("application/json"));
        assert_eq!(denied.json()["error"]["request_id"], "r-1");

        // Everything else counts on the global rule, what is not there too.
        let root = client.send("GET /", &[]).await;
        assert_eq!((root.status, root.body.as_str()), (200, "fine\n"));
        assert_eq!(root.header("x-ratelimit-policy"), Some("ip:global:1m"));
        let left = root.number("x-ratelimit-remaining");
        assert_eq!(left, 20 - 6);
        let nothing = client.send("GET /no/such", &[]).await;
        assert_eq!(nothing.status, 404);
        assert_eq!(nothing.number("x-ratelimit-remaining"), left - 1);

        let health = client.send("GET /health", &[]).await;
        assert_eq!(
            (health.status, health.header("x-ratelimit-limit")),
            (200, None)
        );
    }
}

#[tokio::test]
async fn each_address_has_its_own_limit() {
    let example = Example::start("hyper_server", &[]).await;
    for address in addresses() {
        for (version, left) in VERSIONS.into_iter().zip([4, 3]) {
            let client = Client::from(address, version, example.address());
            let item = client.send("GET /items/1", &[]).await;
            assert_eq!(item.number("x-ratelimit-remaining"), left, "{address}");
        }
    }
}
