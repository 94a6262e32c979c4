//! `tower_governor`: governor per address.

use axum::Router;
use axum::body::Body;
use governor::middleware::{NoOpMiddleware, StateInformationMiddleware};
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::PeerIpKeyExtractor;

use crate::work::interval;

pub const NAME: &str = "tower_governor";

pub const NOTE: &str = "\
tower_governor reads no tokens and has one quota per layer: for three there are three layers by \
address, each with its own clock reading. If the second or third refuses, the ones before have \
charged.";

/// Without headers.
pub fn layer(amount: u32) -> GovernorLayer<PeerIpKeyExtractor, NoOpMiddleware, Body> {
    let mut config = GovernorConfigBuilder::default();
    let config = config.period(interval(amount)).burst_size(amount);
    GovernorLayer::new(config.finish().expect("not zero"))
}

/// With `x-ratelimit-limit` and `x-ratelimit-remaining`.
pub fn with_headers(
    amount: u32,
) -> GovernorLayer<PeerIpKeyExtractor, StateInformationMiddleware, Body> {
    let mut config = GovernorConfigBuilder::default();
    let config = config.period(interval(amount)).burst_size(amount);
    GovernorLayer::new(config.use_headers().finish().expect("not zero"))
}

/// Three layers with headers.
pub fn three(router: Router, amount: u32) -> Router {
    router
        .layer(with_headers(amount))
        .layer(with_headers(amount))
        .layer(with_headers(amount))
}
