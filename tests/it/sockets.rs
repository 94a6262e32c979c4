//! Servers on real sockets, and clients that come from everywhere at once.

mod every_route;
mod head;
mod no_peer_address;
mod problem;
mod uploads;

use std::net::SocketAddr;

use axum::Router;
use axum::extract::Request;
use axum::{ServiceExt, serve};
use tollgate::RateLimitLayer;
use tower::Layer;

use crate::support::sockets::listener;

/// Where the layer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Around each route, by `Router::layer`.
    Routes,
    /// Around the whole router.
    Router,
}

const PLACES: [Place; 2] = [Place::Routes, Place::Router];

/// Serves a router until the runtime of the test ends, with the addresses of its peers.
async fn start(app: Router, limits: &RateLimitLayer, place: Place) -> SocketAddr {
    let (listener, address) = listener().await;
    match place {
        Place::Routes => {
            let app = app.layer(limits.clone());
            let app = app.into_make_service_with_connect_info::<SocketAddr>();
            tokio::spawn(async move { serve(listener, app).await });
        }
        Place::Router => {
            let app = ServiceExt::<Request>::into_make_service_with_connect_info::<SocketAddr>(
                limits.layer(app),
            );
            tokio::spawn(async move { serve(listener, app).await });
        }
    }
    address
}
