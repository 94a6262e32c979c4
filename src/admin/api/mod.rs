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

use super::operator::Desk;
use super::refusal::Refusal;

type Shared = Arc<Desk>;
type Answer = Result<Response, Refusal>;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/statistics", only_get(get(statistics::show)))
        .route("/policy", only_get(get(policy::show)))
        .route("/reload", only_post(post(policy::reload)))
        .route("/lookup", only_post(post(lookup::look_up)))
        .route("/reset", only_post(post(reset::reset)))
        .route(
            "/overrides",
            both(get(overrides::list).post(overrides::set)),
        )
        .route("/overrides/remove", only_post(post(overrides::remove)))
        .route(
            "/maintenance",
            both(get(maintenance::show).post(maintenance::set)),
        )
        .fallback(async || Refusal::not_found())
}

fn only_get(methods: MethodRouter<Shared>) -> MethodRouter<Shared> {
    methods.fallback(async || Refusal::wrong_method("GET, HEAD"))
}

fn only_post(methods: MethodRouter<Shared>) -> MethodRouter<Shared> {
    methods.fallback(async || Refusal::wrong_method("POST"))
}

fn both(methods: MethodRouter<Shared>) -> MethodRouter<Shared> {
    methods.fallback(async || Refusal::wrong_method("GET, HEAD, POST"))
}
