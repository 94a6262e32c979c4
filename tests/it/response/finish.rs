//! Headers that every denial has, whatever rendered it.

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use tollgate::RequestHead;
use tollgate::headers::{HeaderSet, HeaderStyle};
use tollgate::response::{Denial, JsonEnvelope, Render, render_with};

use super::{denied, limited, request};
use crate::headers::{NOW, later, name};

#[test]
fn a_closure_need_not_think_of_headers() {
    let (request, name) = (request(), name("user", "api", "10/minute"));
    let denial = limited(&request, denied(&name, later(1_500_000)));
    let plain = render_with(|denial| {
        let mut response = Response::new(denial.message());
        *response.status_mut() = denial.status();
        response
    });
    let response = plain.respond(&denial, HeaderStyle::default());
    assert_eq!(response.status(), 429);
    assert_eq!(
        response.body(),
        "Rate limit exceeded. Please try again in 2 seconds."
    );
    for (name, value) in [
        ("retry-after", "2"),
        ("cache-control", "no-store"),
        ("x-request-id", "req_7f8e9d0c1b2a3456"),
        ("x-ratelimit-remaining", "0"),
    ] {
        assert_eq!(response.headers()[name], value);
    }
}

#[test]
fn headers_of_a_closure_are_kept() {
    let (request, name) = (request(), name("user", "api", "10/minute"));
    let denial = limited(&request, denied(&name, later(1_500_000)));
    let own = render_with(|_| {
        let builder = Response::builder().status(429);
        let builder = builder.header("retry-after", "Fri, 31 Dec 2027 23:59:59 GMT");
        let builder = builder
            .header("cache-control", "private")
            .header("x-request-id", "mine");
        builder.body("").unwrap()
    });
    let response = own.respond(&denial, HeaderStyle::default());
    assert_eq!(
        response.headers()["retry-after"],
        "Fri, 31 Dec 2027 23:59:59 GMT"
    );
    assert_eq!(response.headers()["cache-control"], "private");
    assert_eq!(response.headers()["x-request-id"], "mine");
}

#[test]
fn a_plain_200_stays_one() {
    let (request, name) = (request(), name("user", "api", "10/minute"));
    let denial = limited(&request, denied(&name, later(1_500_000)));
    let webhook = render_with(|_| Response::new(r#"{"ok":true}"#));
    let response = webhook.respond(&denial, HeaderStyle::new(HeaderSet::None));
    assert_eq!(response.status(), StatusCode::OK);
    let mut names: Vec<&str> = response
        .headers()
        .keys()
        .map(http::HeaderName::as_str)
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["cache-control", "x-request-id"]);
}

#[test]
fn wrong_credentials_are_challenged_and_a_dead_store_has_a_time() {
    let request = request();
    let head = RequestHead::of(&request);
    let shared: Arc<dyn Render> = Arc::new(JsonEnvelope);
    let response = shared.respond(&Denial::unauthorized(head, NOW), HeaderStyle::default());
    let challenge = &response.headers()["www-authenticate"];
    assert_eq!(challenge, r#"Bearer error="invalid_token""#);
    assert!(!response.headers().contains_key("retry-after"));

    let denial = Denial::unavailable(head, Duration::ZERO, NOW);
    let response = shared.respond(&denial, HeaderStyle::default());
    assert_eq!(response.headers()["retry-after"], "1");
    assert!(!response.headers().contains_key("www-authenticate"));
}
