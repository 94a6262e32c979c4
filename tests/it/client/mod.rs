//! The layer for outbound requests: alone on a manual clock, and over sockets.

mod denial_errors;
mod events;
mod hostile;
mod hosts;
mod low_limits;
mod many_clients;
mod pacing;
mod readiness;
mod retries;
mod sockets;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response};
use http_body_util::Full;
use tokio::task::JoinHandle;
use tollgate::client::{PaceLayer, PaceLayerBuilder, ReplayBody};
use tollgate::{Clock, ManualClock, Timestamp};
use tower::{Layer, Service, ServiceExt};

type Body = Full<Bytes>;

/// A server without a network. It responds with the given responses in order, then with 200. It records
/// the arrival of each request.
#[derive(Clone)]
struct Server {
    clock: ManualClock,
    answers: Arc<Mutex<VecDeque<Response<Body>>>>,
    arrivals: Arc<Mutex<Vec<Timestamp>>>,
}

impl Server {
    fn new(clock: &ManualClock) -> Self {
        Self {
            clock: clock.clone(),
            answers: Arc::default(),
            arrivals: Arc::default(),
        }
    }

    fn then(self, status: u16, headers: &[(&str, &str)]) -> Self {
        let mut answer = Response::builder().status(status);
        for (name, value) in headers {
            answer = answer.header(*name, *value);
        }
        let answer = answer.body(Body::default()).unwrap();
        self.answers.lock().unwrap().push_back(answer);
        self
    }

    /// Returns the arrivals of requests, in seconds since the start of the clock.
    fn arrivals(&self) -> Vec<f64> {
        let start = ManualClock::new().now();
        let arrivals = self.arrivals.lock().unwrap();
        let secs = arrivals
            .iter()
            .map(|at| at.duration_since(start).as_secs_f64());
        secs.collect()
    }
}

impl<B> Service<Request<B>> for Server {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        self.arrivals.lock().unwrap().push(self.clock.now());
        let answer = self.answers.lock().unwrap().pop_front();
        ready(Ok(answer.unwrap_or_default()))
    }
}

/// Returns a builder of a layer with a manual clock and a fixed seed.
fn pace(clock: &ManualClock) -> PaceLayerBuilder {
    PaceLayer::builder().clock(clock.clone()).seed(1)
}

fn request(line: &str) -> Request<Body> {
    let (method, uri) = line.split_once(' ').unwrap();
    let request = Request::builder().method(method).uri(uri);
    request.body(Body::default()).unwrap()
}

fn get() -> Request<Body> {
    request("GET http://api.test/")
}

/// Sends a request, and advances the clock while it waits.
async fn send<S, B>(layer: &PaceLayer, server: &S, request: Request<B>, clock: &ManualClock) -> u16
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible> + Clone,
    B: ReplayBody,
{
    send_in_steps(Duration::from_millis(10), layer, server, request, clock).await
}

/// Like `send`, with this step of the clock. Fails after an hour.
async fn send_in_steps<S, B>(
    step: Duration,
    layer: &PaceLayer,
    server: &S,
    request: Request<B>,
    clock: &ManualClock,
) -> u16
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible> + Clone,
    B: ReplayBody,
{
    let response = layer.layer(server.clone()).oneshot(request);
    tokio::pin!(response);
    let started = clock.now();
    loop {
        if let Some(response) = (&mut response).now_or_never() {
            return response.unwrap().status().as_u16();
        }
        assert!(
            clock.sleeping() >= 1,
            "the request waits for something else than the clock"
        );
        clock.advance(step);
        let waited = clock.now().duration_since(started);
        assert!(
            waited < Duration::from_hours(1),
            "the request waits for ever"
        );
    }
}

/// Advances the clock whenever all tasks wait for it, until they are done. Work over sockets takes no
/// time on this clock.
async fn finish<T>(clock: &ManualClock, step: Duration, tasks: Vec<JoinHandle<T>>) -> Vec<T> {
    loop {
        let busy = tasks.iter().filter(|task| !task.is_finished()).count();
        if busy == 0 {
            break;
        }
        if clock.sleeping() >= busy {
            clock.advance(step);
        }
        tokio::task::yield_now().await;
    }
    let results = futures_util::future::join_all(tasks).await;
    results.into_iter().map(Result::unwrap).collect()
}

/// Returns a set of legacy headers.
fn limit_headers<'a>(
    limit: &'a str,
    remaining: &'a str,
    reset: &'a str,
) -> [(&'a str, &'a str); 3] {
    [
        ("x-ratelimit-limit", limit),
        ("x-ratelimit-remaining", remaining),
        ("x-ratelimit-reset", reset),
    ]
}
