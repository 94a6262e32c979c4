//! Those who watch: what they are told, and what they can ask.

mod alerts;
mod ask_back;
mod bounded;
mod credentials;
mod events;
mod figures;
mod metrics;
mod ops;
mod prometheus;
mod shares;
mod statistics;

use std::net::{IpAddr, Ipv4Addr};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use tollgate::identity::PeerAddr;
use tollgate::policy::IntoPolicy;
use tollgate::{ManualClock, RateLimitLayer, RateLimitLayerBuilder};
use tower::ServiceExt;

use crate::support::http::{echo, layer, request};

/// A layer around something that answers everything, on a clock that stands still.
struct Scene {
    limits: RateLimitLayer,
    app: Router,
    clock: ManualClock,
}

impl Scene {
    fn new(policy: impl IntoPolicy) -> Self {
        Self::with(policy, |builder| builder)
    }

    fn with(
        policy: impl IntoPolicy,
        settings: impl FnOnce(RateLimitLayerBuilder) -> RateLimitLayerBuilder,
    ) -> Self {
        let (builder, clock) = layer(policy);
        let limits = settings(builder).build().unwrap();
        let app = echo().layer(limits.clone());
        Self { limits, app, clock }
    }

    /// The status of the answer to a user.
    async fn user(&self, line: &str, user: &str) -> u16 {
        self.send(request(line, &[("x-user", user)])).await
    }

    /// The status of the answer to somebody anonymous at an address.
    async fn address(&self, line: &str, number: u32) -> u16 {
        let mut request = request(line, &[]);
        let address = Ipv4Addr::from(0x0a00_0000 + number);
        let peer = PeerAddr((IpAddr::V4(address), 50_000).into());
        request.extensions_mut().insert(peer);
        self.send(request).await
    }

    async fn send(&self, request: Request<Body>) -> u16 {
        let response = self.app.clone().oneshot(request).await.unwrap();
        response.status().as_u16()
    }
}
