//! gRPC with the client of tonic.

use std::net::IpAddr;

use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::process::Example;
use crate::support::sockets::{Client, Version, addresses};

async fn client(example: &Example, from: Option<IpAddr>) -> HealthClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{}", example.address())).unwrap();
    HealthClient::new(endpoint.local_address(from).connect().await.unwrap())
}

fn request() -> Request<HealthCheckRequest> {
    Request::new(HealthCheckRequest::default())
}

fn text_of<'a>(metadata: &'a MetadataMap, name: &str) -> Option<&'a str> {
    metadata.get(name).map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn denied_call_gets_resource_exhausted() {
    let example = Example::start("grpc", &[]).await;
    let mut health = client(&example, None).await;
    for left in ["4", "3", "2", "1", "0"] {
        let answer = health.check(request()).await.unwrap();
        assert_eq!(answer.get_ref().status, 1, "serving");
        let metadata = answer.metadata();
        assert_eq!(text_of(metadata, "x-ratelimit-policy"), Some("ip:check:1m"));
        assert_eq!(text_of(metadata, "x-ratelimit-limit"), Some("5"));
        assert_eq!(text_of(metadata, "x-ratelimit-remaining"), Some(left));
    }

    let denied = health.check(request()).await.unwrap_err();
    assert_eq!(denied.code(), Code::ResourceExhausted);
    let text = denied.message();
    assert!(
        text.starts_with("Health checks are limited to 5 per minute. Try again in "),
        "{text}"
    );
    let metadata = denied.metadata();
    assert_eq!(text_of(metadata, "x-ratelimit-policy"), Some("ip:check:1m"));
    assert_eq!(text_of(metadata, "x-ratelimit-remaining"), Some("0"));
    let wait: u64 = text_of(metadata, "retry-after").unwrap().parse().unwrap();
    assert!((1..=120).contains(&wait), "{wait} seconds");

    // Other methods have quota left, and streams are limited too.
    let watched = health.watch(request()).await.unwrap();
    let policy = text_of(watched.metadata(), "x-ratelimit-policy");
    assert_eq!(policy, Some("ip:global:1m"));
    let first = watched.into_inner().message().await.unwrap().unwrap();
    assert_eq!(first.status, 1);
}

#[tokio::test]
async fn each_address_has_its_own_limit() {
    let example = Example::start("grpc", &[]).await;
    for address in addresses() {
        let mut health = client(&example, Some(address)).await;
        let answer = health.check(request()).await.unwrap();
        let left = text_of(answer.metadata(), "x-ratelimit-remaining");
        assert_eq!(left, Some("4"), "{address}");
    }
}

/// On the wire, a denial has no status 429, which gRPC does not define.
#[tokio::test]
async fn a_denial_is_all_headers() {
    let example = Example::start("grpc", &[]).await;
    let client = Client::new(Version::Http2, example.address());
    let grpc = [("content-type", "application/grpc"), ("te", "trailers")];
    let line = "POST /grpc.health.v1.Health/Check";
    for _ in 0..5 {
        client.send(line, &grpc).await;
    }
    let denied = client.send(line, &grpc).await;
    assert_eq!((denied.status, denied.body.as_str()), (200, ""));
    assert_eq!(denied.header("grpc-status"), Some("8"));
    assert_eq!(denied.header("content-type"), Some("application/grpc"));
    assert_eq!(denied.header("x-ratelimit-policy"), Some("ip:check:1m"));
}
