//! The JSON API for operators.

mod explain;
mod lookup;
mod maintenance;
mod overrides;
mod policy;
mod reset;
mod statistics;

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn;
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};

use super::api_error::ApiError;
use super::builder::AdminState;
use super::operator::require_write;

type SharedState = Arc<AdminState>;
type ApiResult = Result<Response, ApiError>;

pub(super) fn routes() -> Router<SharedState> {
    Router::new()
        .route("/statistics", only_get(get(statistics::show)))
        .route("/policy", only_get(get(policy::show)))
        .route("/reload", only_post(change(policy::reload)))
        .route("/lookup", only_post(post(lookup::look_up)))
        .route("/reset", only_post(change(reset::reset)))
        .route(
            "/overrides",
            get_and_post(get(overrides::list).merge(change(overrides::set))),
        )
        .route("/overrides/remove", only_post(change(overrides::remove)))
        .route(
            "/maintenance",
            get_and_post(get(maintenance::show).merge(change(maintenance::set))),
        )
        .fallback(async || ApiError::not_found())
}

/// Routes POST requests to a handler that changes limits. Tokens that may only read get 403.
fn change<T: 'static>(handler: impl Handler<T, SharedState>) -> MethodRouter<SharedState> {
    post(handler).route_layer(from_fn(require_write))
}

fn only_get(methods: MethodRouter<SharedState>) -> MethodRouter<SharedState> {
    methods.fallback(async || ApiError::wrong_method("GET, HEAD"))
}

fn only_post(methods: MethodRouter<SharedState>) -> MethodRouter<SharedState> {
    methods.fallback(async || ApiError::wrong_method("POST"))
}

fn get_and_post(methods: MethodRouter<SharedState>) -> MethodRouter<SharedState> {
    methods.fallback(async || ApiError::wrong_method("GET, HEAD, POST"))
}
