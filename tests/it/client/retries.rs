//! Which requests are retried, when, and how often.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use tollgate::ManualClock;
use tollgate::client::{PaceLayer, ReplayBody, SendOnce};

use super::{Body, Server, get, pace, request, send};

const WAIT: &[(&str, &str)] = &[("retry-after", "7")];

fn clock_and_layer() -> (ManualClock, PaceLayer) {
    let clock = ManualClock::new();
    let layer = pace(&clock).build().unwrap();
    (clock, layer)
}

/// Sends a request. Returns the status that the caller gets, and the arrivals at the server.
async fn outcome(answers: &[(u16, &[(&str, &str)])], line: &str) -> (u16, Vec<f64>) {
    let (clock, layer) = clock_and_layer();
    let server = answers
        .iter()
        .fold(Server::new(&clock), |server, (status, headers)| {
            server.then(*status, headers)
        });
    let status = send(&layer, &server, request(line), &clock).await;
    (status, server.arrivals())
}

#[tokio::test]
async fn denied_requests_are_retried_after_retry_after() {
    for header in ["7", "Wed, 01 Jan 2025 00:00:07 GMT"] {
        for line in ["GET http://api.test/", "POST http://api.test/"] {
            let denial: &[_] = &[("retry-after", header)];
            let (status, arrivals) = outcome(&[(429, denial)], line).await;
            assert_eq!((status, arrivals.len()), (200, 2), "{line}");
            // Jitter adds a quarter at most.
            assert!((7.0..=8.8).contains(&arrivals[1]), "{arrivals:?}");
        }
    }
}

#[tokio::test]
async fn waits_double_without_retry_after_and_reset() {
    let (status, arrivals) =
        outcome(&[(429, &[]), (429, &[]), (429, &[])], "GET http://a.test/").await;
    assert_eq!((status, arrivals.len()), (200, 4));
    let waits: Vec<f64> = arrivals.windows(2).map(|two| two[1] - two[0]).collect();
    for (wait, most) in waits.iter().zip([1.0, 2.0, 4.0]) {
        assert!(
            (most / 2.0..=most * 1.25 + 0.26).contains(wait),
            "{waits:?}"
        );
    }
}

#[tokio::test]
async fn without_retry_after_the_wait_ends_at_the_reset() {
    let denial = super::limit_headers("100", "0", "30");
    let (status, arrivals) = outcome(&[(429, &denial)], "GET http://a.test/").await;
    assert_eq!(status, 200);
    assert!((30.0..=40.1).contains(&arrivals[1]), "{arrivals:?}");
}

#[tokio::test]
async fn a_request_is_sent_at_most_four_times() {
    let (status, arrivals) = outcome(&[(429, WAIT); 9], "GET http://a.test/").await;
    assert_eq!((status, arrivals.len()), (429, 4));
}

/// A 503 does not exclude that the server has processed the request.
#[tokio::test]
async fn a_503_is_retried_if_that_is_safe() {
    for (line, headers, times) in [
        ("GET http://a.test/", &[][..], 2),
        ("PUT http://a.test/", &[], 2),
        ("DELETE http://a.test/", &[], 2),
        ("POST http://a.test/", &[], 1),
        ("PATCH http://a.test/", &[], 1),
        // A request with `Retry-After` in its response was not processed.
        ("POST http://a.test/", WAIT, 2),
    ] {
        let (status, arrivals) = outcome(&[(503, headers)], line).await;
        assert_eq!(arrivals.len(), times, "{line} {headers:?}");
        assert_eq!(status, if times == 2 { 200 } else { 503 });
    }
}

#[tokio::test]
async fn other_statuses_are_not_retried() {
    for status in [200, 301, 400, 401, 404, 500, 502, 504] {
        let (seen, arrivals) = outcome(&[(status, WAIT)], "GET http://a.test/").await;
        assert_eq!((seen, arrivals.len()), (status, 1));
    }
}

/// GitHub's secondary limits have a `Retry-After`, the primary ones a reset.
#[tokio::test]
async fn github_denies_with_403() {
    let primary = [
        ("x-ratelimit-limit", "5000"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1735689630"),
        ("x-ratelimit-resource", "core"),
    ];
    for (headers, times) in [
        (WAIT, 2),
        (&primary[..], 2),
        // A 403 for another reason, on the last request of a window.
        (&primary[..3], 1),
        (&[], 1),
    ] {
        let (_, arrivals) = outcome(&[(403, headers)], "GET http://a.test/").await;
        assert_eq!(arrivals.len(), times, "{headers:?}");
    }
}

/// Our own server denies gRPC like this. `RESOURCE_EXHAUSTED` without a limit is not a denial.
#[tokio::test]
async fn grpc_denies_with_200() {
    for (headers, times) in [
        (&[("grpc-status", "8"), ("retry-after", "7")][..], 2),
        (&[("grpc-status", "8")], 1),
        (&[("grpc-status", "0"), ("x-ratelimit-remaining", "0")], 1),
    ] {
        let (_, arrivals) = outcome(&[(200, headers)], "POST http://a.test/").await;
        assert_eq!(arrivals.len(), times, "{headers:?}");
    }
}

#[tokio::test]
async fn stripe_can_forbid_a_retry() {
    let no = [("stripe-should-retry", "false"), ("retry-after", "1")];
    let (status, arrivals) = outcome(&[(429, &no)], "GET http://a.test/").await;
    assert_eq!((status, arrivals.len()), (429, 1));
    let yes = [("stripe-should-retry", "true")];
    let (status, arrivals) = outcome(&[(429, &yes)], "GET http://a.test/").await;
    assert_eq!((status, arrivals.len()), (200, 2));
}

#[tokio::test]
async fn a_wait_beyond_max_wait_returns_the_response_at_once() {
    let long: &[_] = &[("retry-after", "121")];
    let (status, arrivals) = outcome(&[(429, long)], "GET http://a.test/").await;
    assert_eq!((status, arrivals.len()), (429, 1));
}

/// Later requests to the host wait as well.
#[tokio::test]
async fn no_request_is_sent_to_a_blocked_host() {
    let (clock, layer) = clock_and_layer();
    let server = Server::new(&clock).then(429, WAIT);
    let first = send(
        &layer,
        &server,
        request("GET http://a.test/").map(SendOnce::new),
        &clock,
    )
    .await;
    assert_eq!(first, 429);
    assert_eq!(
        send(&layer, &server, request("GET http://a.test/"), &clock).await,
        200
    );
    let arrivals = server.arrivals();
    assert!(arrivals[1] >= 7.0, "{arrivals:?}");
    // Requests to another host do not wait.
    let (clock, layer) = clock_and_layer();
    let server = Server::new(&clock).then(429, WAIT);
    send(
        &layer,
        &server,
        request("GET http://a.test/").map(SendOnce::new),
        &clock,
    )
    .await;
    send(&layer, &server, request("GET http://b.test/"), &clock).await;
    assert!(server.arrivals()[1] < 1e-9);
}

#[tokio::test]
async fn retries_are_limited_by_the_budget() {
    let (clock, layer) = clock_and_layer();
    let headers: &[_] = &[("retry-after", "1")];
    let server = (0..10_000).fold(Server::new(&clock), |server, _| server.then(429, headers));
    for _ in 0..100 {
        assert_eq!(send(&layer, &server, get(), &clock).await, 429);
    }
    let retries = server.arrivals().len() - 100;
    assert_eq!(retries, 10 + 19, "ten, and a fifth of the requests");
    // A budget of 0 allows no retries.
    let layer = pace(&clock).retry_budget(0.0).build().unwrap();
    let server = Server::new(&clock).then(429, headers);
    assert_eq!(send(&layer, &server, get(), &clock).await, 429);
}

/// A body that can be read only once. It counts calls of `replay`.
struct Stream(Arc<AtomicUsize>);

impl ReplayBody for Stream {
    fn replay(&self) -> Option<Self> {
        self.0.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[tokio::test]
async fn a_stream_is_never_sent_again() {
    let (clock, layer) = clock_and_layer();
    let server = Server::new(&clock).then(429, WAIT);
    let copies = Arc::new(AtomicUsize::new(0));
    let request = Request::put("http://a.test/")
        .body(Stream(Arc::clone(&copies)))
        .unwrap();
    assert_eq!(send(&layer, &server, request, &clock).await, 429);
    assert_eq!(server.arrivals().len(), 1);
    assert_eq!(copies.load(Ordering::Relaxed), 1);
}

#[test]
fn replayable_bodies_are_replayed() {
    fn can<B: ReplayBody>(body: &B) -> bool {
        body.replay().is_some()
    }
    let full = || Full::new(Bytes::from_static(b"text"));
    assert!(can(&()) && can(&"text") && can(&Bytes::new()) && can(&vec![1_u8]));
    assert!(can(&full()) && can(&Empty::<Bytes>::new()) && can(&Some(full())));
    assert!(can(&None::<SendOnce<Body>>) && !can(&Some(SendOnce::new(full()))));
    // The content of a boxed body is unknown, except whether it is empty.
    assert!(!can(&full().boxed()) && !can(&full().boxed_unsync()));
    assert!(can(&Full::<Bytes>::default().boxed()));
    assert!(can(&Full::<Bytes>::default().boxed_unsync()));
    {
        assert!(can(&axum::body::Body::empty()) && !can(&axum::body::Body::from("text")));
    }
}

/// Method, URI, headers, extensions and body of a retry equal those of the first request.
#[tokio::test]
async fn a_retry_equals_the_first_request() {
    let (clock, layer) = clock_and_layer();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let server = tower::service_fn(move |request: Request<&'static str>| {
        let (head, body) = request.into_parts();
        let mut seen = log.lock().unwrap();
        let status = if seen.is_empty() { 429 } else { 200 };
        seen.push((
            head.method,
            head.uri,
            head.version,
            head.headers,
            head.extensions.get::<u8>().copied(),
            body,
        ));
        let response = Response::builder().status(status).body(Body::default());
        std::future::ready(Ok::<_, Infallible>(response.unwrap()))
    });
    let request = Request::patch("http://a.test/x?y=1")
        .version(http::Version::HTTP_2)
        .header("a", "1")
        .header("a", "2")
        .extension(7_u8)
        .body("text")
        .unwrap();
    assert_eq!(send(&layer, &server, request, &clock).await, 200);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0], seen[1]);
    assert_eq!((seen[1].4, seen[1].5), (Some(7), "text"));
}
