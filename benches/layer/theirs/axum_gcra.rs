//! `axum_gcra`, which is a layer for axum 0.7: measured against a bare router of that.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;

use axum_before::Router;
use axum_before::async_trait;
use axum_before::extract::{ConnectInfo, FromRequestParts};
use axum_before::routing::get;
use axum_gcra::RateLimitLayer;
use axum_gcra::gcra::Quota;
use http::request::Parts;

use crate::work::interval;

pub const NAME: &str = "axum_gcra";

pub const NOTE: &str = "\
axum_gcra is a layer for axum 0.7, and what it adds is what it adds there. It counts per route and \
writes no headers.";

/// Peer address as the key. The crate's own key reads headers that every client can set.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Peer(IpAddr);

#[async_trait]
impl<S> FromRequestParts<S> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        Ok(Self(peer.expect("a peer").0.ip()))
    }
}

/// Returns the bare router, for axum 0.7.
pub fn bare() -> Router {
    Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/v1/items", get(|| async { "items" }))
        .route("/v1/items/:id", get(|| async { "item" }))
}

pub fn around(router: Router, amount: u32) -> Router {
    let burst = NonZeroU64::new(amount.into()).expect("not zero");
    let layer = RateLimitLayer::<Peer>::builder()
        .with_default_quota(Quota::new(interval(amount), burst))
        .default_handle_error();
    router.route_layer(layer)
}
