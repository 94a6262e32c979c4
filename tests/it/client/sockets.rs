//! Over real sockets: hyper-util's client and reqwest.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::Response;
use axum::routing::{any, get};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tollgate::client::PaceLayer;
use tollgate::{Clock, Identity, ManualClock, RateLimitLayer};
use tower::{Layer, ServiceExt};

use super::{finish, pace};

async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// Completes a request, and advances the clock while it waits.
async fn complete<T: Send + 'static>(
    clock: &ManualClock,
    answer: impl Future<Output = T> + Send + 'static,
) -> T {
    let task = tokio::spawn(answer);
    let mut answers = finish(clock, Duration::from_millis(10), vec![task]).await;
    answers.pop().unwrap()
}

/// Starts a server that denies the first request and records the bodies of all.
async fn serve_and_deny_once() -> (SocketAddr, Arc<Mutex<Vec<Bytes>>>) {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&bodies);
    let answer = move |request: Request| {
        let seen = Arc::clone(&seen);
        async move {
            let body = to_bytes(request.into_body(), 1 << 20).await.unwrap();
            let mut seen = seen.lock().unwrap();
            seen.push(body);
            let status = if seen.len() == 1 { 429 } else { 200 };
            let response = Response::builder().status(status);
            response
                .header("retry-after", "3")
                .body(Body::empty())
                .unwrap()
        }
    };
    (serve(Router::new().route("/", any(answer))).await, bodies)
}

fn hyper_client<B>() -> Client<hyper_util::client::legacy::connect::HttpConnector, B>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    Client::builder(TokioExecutor::new()).build_http()
}

#[tokio::test]
async fn bytes_are_sent_again() {
    let clock = ManualClock::new();
    let (server, bodies) = serve_and_deny_once().await;
    let client = pace(&clock).build().unwrap().layer(hyper_client());
    let body = Full::new(Bytes::from_static(b"all of it"));
    let request = http::Request::post(format!("http://{server}/"))
        .body(body)
        .unwrap();
    let response = complete(&clock, client.oneshot(request)).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(*bodies.lock().unwrap(), ["all of it"; 2]);
}

#[tokio::test]
async fn a_stream_is_sent_once() {
    let clock = ManualClock::new();
    let (server, bodies) = serve_and_deny_once().await;
    let client = pace(&clock).build().unwrap().layer(hyper_client());
    let frames = ["piece ", "by ", "piece"].map(|piece| {
        let piece = Bytes::from_static(piece.as_bytes());
        Ok::<_, std::io::Error>(http_body::Frame::data(piece))
    });
    let body = StreamBody::new(stream::iter(frames)).boxed();
    let request = http::Request::put(format!("http://{server}/"))
        .body(body)
        .unwrap();
    let response = complete(&clock, client.oneshot(request)).await.unwrap();
    assert_eq!(response.status(), 429);
    assert_eq!(*bodies.lock().unwrap(), ["piece by piece"]);
}

/// The layer works around reqwest: requests and responses are converted to those of the `http` crate.
#[tokio::test]
async fn requests_of_reqwest_keep_to_the_limit() {
    let clock = ManualClock::new();
    let limits = RateLimitLayer::builder("2 per 10 seconds, fixed-window")
        .identify_with(|_| Some(Identity::user("caller")))
        .clock(clock.clone())
        .build()
        .unwrap();
    let server = serve(
        Router::new()
            .route("/", get(|| async { "hello" }))
            .layer(limits),
    )
    .await;
    let layer = pace(&clock).build().unwrap();
    let client = reqwest::Client::new()
        .map_request(|request: http::Request<Bytes>| {
            reqwest::Request::try_from(request).expect("a whole address")
        })
        .map_response(Response::from);
    let client = layer.layer(client);
    for number in 0..6_u64 {
        let request = http::Request::get(format!("http://{server}/")).body(Bytes::new());
        let response = client.clone().oneshot(request.unwrap());
        let response = complete(&clock, response).await.unwrap();
        assert_eq!(response.status(), 200, "request {number}");
    }
    let took = clock.now().duration_since(ManualClock::new().now());
    assert!(took >= Duration::from_secs(20), "{took:?}");
    let limits = layer.limits(&server.to_string()).unwrap();
    assert_eq!(limits.limit, Some(2));
}

#[test]
fn reqwest_is_converted_as_the_guide_shows() {
    let conversion = |text: &str| {
        let (_, rest) = text.split_once("let client = reqwest::").unwrap();
        let (conversion, _) = rest.split_once(';').unwrap();
        conversion.split_whitespace().collect::<String>()
    };
    let guide = include_str!("../../../src/docs/client.md");
    assert_eq!(conversion(guide), conversion(include_str!("sockets.rs")));
}

/// Twenty clients send requests to a server that sends other invalid limits each time.
#[tokio::test]
async fn invalid_limits_delay_no_request_beyond_max_wait() {
    const MAX_WAIT: Duration = Duration::from_secs(10);
    const CALLS: u32 = 4;
    let invalid: [(u16, &str, &[u8]); 8] = [
        (200, "x-ratelimit-reset", b"253402300799"),
        (429, "retry-after", b"Fri, 31 Dec 9999 23:59:59 GMT"),
        (200, "x-ratelimit-reset", b"-7"),
        (503, "retry-after", b"99999999999999999999"),
        (200, "ratelimit", b"\"x\";r=0;t=999999999999999"),
        (429, "retry-after", b"\xff\xfe"),
        (429, "retry-after", b"0"),
        (200, "x-ratelimit-reset", b"18446744073709551615"),
    ];
    let turn = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let answer = move || {
        let turn = turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (status, name, value) = invalid[turn % invalid.len()];
        async move {
            Response::builder()
                .status(status)
                .header("x-ratelimit-limit", "10")
                .header("x-ratelimit-remaining", "0")
                .header(name, value)
                .body(Body::empty())
                .unwrap()
        }
    };
    let server = serve(Router::new().route("/", get(answer))).await;
    let clock = ManualClock::new();
    let layer = PaceLayer::builder()
        .clock(clock.clone())
        .max_wait(MAX_WAIT)
        .build()
        .unwrap();
    let clients = (0..20).map(|_| {
        let client = layer.layer(hyper_client());
        tokio::spawn(async move {
            for _ in 0..CALLS {
                let request = http::Request::get(format!("http://{server}/"));
                let request = request.body(Full::<Bytes>::default()).unwrap();
                client.clone().oneshot(request).await.unwrap();
            }
        })
    });
    finish(&clock, Duration::from_millis(10), clients.collect()).await;
    let took = clock.now().duration_since(ManualClock::new().now());
    assert!(
        took <= MAX_WAIT * CALLS + Duration::from_secs(1),
        "{took:?}"
    );
}
