//! A limited router, requests to it, and the reader of its responses.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Extensions, HeaderMap, Method, Request, Response};
use axum::routing::any;
use tollgate::policy::IntoPolicy;
use tollgate::{Identity, ManualClock, RateLimitLayer, RateLimitLayerBuilder};
use tower::ServiceExt;

/// Returns a router that answers every path with the status in the header `x-answer`, or with 200.
pub(crate) fn echo() -> Router {
    let handler = |request: Request<Body>| async move {
        let wanted = request.headers().get("x-answer");
        let status = wanted.map_or(200, |status| status.to_str().unwrap().parse().unwrap());
        Response::builder()
            .status(status)
            .body(Body::from("ran"))
            .unwrap()
    };
    Router::new()
        .route("/", any(handler))
        .route("/{*path}", any(handler))
}

/// Returns a layer with a manual clock. The headers `x-user`, `x-tier` and `x-tenant` identify callers.
pub(crate) fn layer(policy: impl IntoPolicy) -> (RateLimitLayerBuilder, ManualClock) {
    let clock = ManualClock::new();
    let builder = RateLimitLayer::builder(policy)
        .clock(clock.clone())
        .identify_with(|head| {
            let user = Identity::user(head.header("x-user")?);
            let user = match head.header("x-tier") {
                Some(tier) => user.tier(tier),
                None => user,
            };
            Some(match head.header("x-tenant") {
                Some(tenant) => user.tenant(tenant),
                None => user,
            })
        });
    (builder, clock)
}

/// Builds a request without body from `GET /path` and headers.
pub(crate) fn request(line: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let (method, uri) = line.split_once(' ').unwrap();
    let method: Method = method.parse().unwrap();
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).unwrap()
}

/// Sends one request from a peer address.
pub(crate) async fn send_from(
    app: &Router,
    peer: &str,
    line: &str,
    headers: &[(&str, &str)],
) -> Answer {
    let mut request = request(line, headers);
    let peer = tollgate::identity::PeerAddr(peer.parse().unwrap());
    request.extensions_mut().insert(peer);
    Answer::read(app.clone().oneshot(request).await.unwrap()).await
}

/// Sends one request without a peer address.
pub(crate) async fn send(app: &Router, line: &str, headers: &[(&str, &str)]) -> Answer {
    let response = app.clone().oneshot(request(line, headers)).await.unwrap();
    Answer::read(response).await
}

/// A response whose body has been read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) extensions: Extensions,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) async fn read(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, 1 << 20).await.unwrap();
        Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            extensions: parts.extensions,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    /// Returns the only value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let first = values.next()?;
        assert!(values.next().is_none(), "{name} occurs twice");
        Some(first.to_str().unwrap())
    }

    pub(crate) fn number(&self, name: &str) -> u64 {
        self.header(name)
            .unwrap_or_else(|| panic!("no {name}"))
            .parse()
            .unwrap()
    }

    /// Returns the names of all quotas that were charged, from the IETF headers.
    pub(crate) fn charged(&self) -> Vec<String> {
        let quotas = self.header("ratelimit-policy").unwrap_or_default();
        let quoted = quotas
            .split(", ")
            .filter_map(|quota| quota.split('"').nth(1));
        quoted.map(str::to_owned).collect()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}
