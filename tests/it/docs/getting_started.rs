//! The first programs of the README and of the guide, served so that their commands can be run.

use std::net::SocketAddr;

use axum::{Router, routing::get};
use tollgate::RateLimitLayer;

use super::page::Page;

pub(super) const PAGE: &str = "src/docs/getting_started.md";

/// Serves a router on a free port.
pub(crate) async fn serve(app: Result<Router, tollgate::Error>) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let app = app.unwrap();
        axum::serve(
            listener,
            app.into_make_service_with_connect_info::<SocketAddr>(),
        )
        .await
    });
    address
}

/// Returns the program of the guide.
pub(super) fn app() -> Result<Router, tollgate::Error> {
    let app = Router::new()
        .route("/", get(|| async { "hello" }))
        .layer(RateLimitLayer::new("100/minute")?);
    Ok(app)
}

#[test]
fn served_program_is_that_of_the_guide() {
    let without_line_breaks = |text: &str| text.split_whitespace().collect::<String>();
    let (_, served) = include_str!("getting_started.rs")
        .split_once("let app = Router")
        .unwrap();
    let served = without_line_breaks(served.split_once(';').unwrap().0);
    let shown = Page::read(PAGE).blocks_in("no_run");
    assert!(
        without_line_breaks(&shown[0]).contains(&served),
        "{}",
        shown[0]
    );
}
