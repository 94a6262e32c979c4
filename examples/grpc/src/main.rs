//! A tonic server with limits per method. Denied calls get `RESOURCE_EXHAUSTED`.
//!
//! ```sh
//! cargo run -p example-grpc
//! grpcurl -plaintext 127.0.0.1:3000 grpc.health.v1.Health/Check    # six times
//! ```
//!
//! The service is the standard health check, so that no code has to be generated. Settings: `PORT`
//! (default 3000; 0 is any free port) and `REDIS_URL` (default: count in memory).

#[path = "../../common/mod.rs"]
mod common;

use std::error::Error;
use std::time::Duration;

use tollgate::RateLimitLayer;
use tollgate::policy::{Policy, Rule};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The route of a gRPC method is `POST /{service}/{method}`.
    let check = Rule::new("5/minute")
        .name("check")
        .message("Health checks are limited to {limit} per minute. Try again in {retry_in}.");
    let policy = Policy::builder()
        .everyone("100/minute")
        .endpoint("POST /grpc.health.v1.Health/Check", check);
    // tonic provides the peer address in the extensions.
    let limits = RateLimitLayer::builder(policy)
        .store(common::store("grpc", Duration::from_millis(50)).await)
        .build()?;

    let (_, health) = tonic_health::server::health_reporter();
    let (listener, stop) = common::listen().await;
    let server = Server::builder()
        .layer(limits.clone())
        .add_service(health)
        .serve_with_incoming_shutdown(TcpIncoming::from(listener), stop.received());
    let shutdown = |deadline| limits.shutdown(deadline);
    Ok(stop.run(server, shutdown).await?)
}
