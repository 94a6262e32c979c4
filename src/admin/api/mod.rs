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
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};

use super::api_error::ApiError;
use super::builder::AdminState;

type SharedState = Arc<AdminState>;
type ApiResult = Result<Response, ApiError>;

pub(super) fn routes() -> Router<SharedState> {
    Router::new()
        .route("/statistics", only_get(get(statistics::show)))
        .route("/policy", only_get(get(policy::show)))
        .route("/reload", only_post(post(policy::reload)))
        .route("/lookup", only_post(post(lookup::look_up)))
        .route("/reset", only_post(post(reset::reset)))
        .route(
            "/overrides",
            get_and_post(get(overrides::list).post(overrides::set)),
        )
        .route("/overrides/remove", only_post(post(overrides::remove)))
        .route(
            "/maintenance",
            get_and_post(get(maintenance::show).post(maintenance::set)),
        )
        .fallback(async || ApiError::not_found())
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
