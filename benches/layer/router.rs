//! The router that all layers go around, and a layer that does nothing.

use std::task::{Context, Poll};

use axum::Router;
use axum::routing::get;
use tower::{Layer, Service};

/// A router with nothing around its handlers.
pub fn bare() -> Router {
    Router::new()
        .route("/", get(async || "hello"))
        .route("/v1/items", get(async || "items"))
        .route("/v1/items/{id}", get(async || "item"))
}

/// Calls the service within, and nothing else: what being a layer costs.
#[derive(Clone, Copy)]
pub struct Nothing;

#[derive(Clone)]
pub struct NothingAround<S>(S);

impl<S> Layer<S> for Nothing {
    type Service = NothingAround<S>;

    fn layer(&self, inner: S) -> NothingAround<S> {
        NothingAround(inner)
    }
}

impl<S: Service<R>, R> Service<R> for NothingAround<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.0.call(request)
    }
}
