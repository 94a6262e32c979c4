//! Events, metrics, statistics and alerts.

mod alerts;
mod bounded;
mod configuration_warnings;
mod credentials;
mod event_fields;
mod events;
mod metrics;
mod metrics_without_traffic;
mod ops;
mod prometheus;
mod recorder;
mod reentrancy;
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

/// A layer around an echo service, on a manual clock.
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

    /// Returns the status of the response to a user.
    async fn user(&self, line: &str, user: &str) -> u16 {
        self.send(request(line, &[("x-user", user)])).await
    }

    /// Returns the status of the response to an unauthenticated caller at an address.
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
