//! Forms of a request target that only a socket transports.

use crate::support::sockets::listener;
use axum::Router;
use axum::routing::any;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tollgate::headers::HeaderSet;
use tollgate::policy::{Policy, Rule};
use tollgate::{ManualClock, RateLimitLayer};
use tower::Layer;

fn layer() -> RateLimitLayer {
    let policy = Policy::builder()
        .everyone("1000/hour")
        .endpoint("/login", Rule::new("100/hour").name("login"))
        .endpoint("/", Rule::new("100/hour").name("root"));
    let builder = RateLimitLayer::builder(policy).clock(ManualClock::new());
    builder.headers(HeaderSet::Ietf).build().unwrap()
}

fn router() -> Router {
    Router::new()
        .route("/login", any(async || "login"))
        .route("/", any(async || "root"))
        .fallback(async || "nothing")
}

async fn exchange(app: Router, request: &str) -> String {
    let (listener, address) = listener().await;
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    server.abort();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn every_form_of_a_target_is_charged_to_the_rule_of_its_handler() {
    for target in [
        "GET /login",
        "HEAD /login",
        "get /login",
        "FOO /login",
        "GET http://example.com/login",
        "GET http://example.com/login?x=1",
        "GET HTTP://user@example.com:80/login",
        "GET /login?a=/../b",
        "GET /login#fragment",
        "GET //login",
        "GET /login/",
        "GET /%6Cogin",
        "GET http://example.com",
        "GET http://example.com?x",
        "OPTIONS *",
        "GET *",
        "CONNECT example.com:443",
        "GET /\\login",
        "GET /x/../login",
    ] {
        for app in [
            router().layer(layer()),
            Router::new().fallback_service(layer().layer(router())),
        ] {
            let request = format!("{target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
            let answer = exchange(app, &request).await;
            for handler in ["login", "root"] {
                let ran = answer.ends_with(&format!("\r\n\r\n{handler}"));
                let charged = answer.contains(&format!("\"ip:{handler}:1h\""))
                    || answer.contains(&format!("\"unknown:{handler}:1h\""));
                assert!(charged || !ran, "{target}: {answer}");
            }
            if !answer.starts_with("HTTP/1.1 4") {
                assert!(answer.contains(":global:1h\""), "{target}: {answer}");
            }
        }
    }
}
