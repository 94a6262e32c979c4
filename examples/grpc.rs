//! tonic: one layer on the server, and whoever asks too often gets `RESOURCE_EXHAUSTED`.
//!
//! ```sh
//! cargo run --example grpc --features grpc
//! grpcurl -plaintext 127.0.0.1:3000 grpc.health.v1.Health/Check    # six times
//! ```
//!
//! The service is gRPC's own health check, so that nothing has to be generated. `PORT` (3000; 0
//! is any free one) and `REDIS_URL` (else it counts in memory) can be set.

mod common;
#[path = "common/store.rs"]
mod store;

use std::error::Error;
use std::time::Duration;

use tollgate::RateLimitLayer;
use tollgate::policy::{Policy, Rule};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // A method of gRPC is a route: its service and its name, always by POST.
    let check = Rule::new("5/minute")
        .name("check")
        .message("Healthy people ask {limit} times a minute. Try again in {retry_in}.");
    let policy = Policy::builder()
        .everyone("100/minute")
        .endpoint("POST /grpc.health.v1.Health/Check", check);
    // tonic itself tells the layer where requests come from.
    let limits = RateLimitLayer::builder(policy)
        .store(store::store("grpc", Duration::from_millis(50)))
        .build()?;

    let (_, health) = tonic_health::server::health_reporter();
    let (listener, stopped) = common::listen().await;
    Server::builder()
        .layer(limits)
        .add_service(health)
        .serve_with_incoming_shutdown(TcpIncoming::from(listener), stopped)
        .await?;
    Ok(())
}
