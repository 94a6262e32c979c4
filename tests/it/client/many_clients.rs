//! Twenty clients send 5,000 requests under one limit to our own server, over sockets. Both sides use
//! one manual clock, which moves only when all tasks wait.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tollgate::client::PaceLayer;
use tollgate::headers::HeaderSet;
use tollgate::policy::Policy;
use tollgate::{Clock, Identity, ManualClock, RateLimitLayer, Timestamp};
use tower::{Layer, ServiceExt};

use super::finish;

const CLIENTS: u32 = 20;
const CALLS: u32 = 5_000;
const LIMIT: u32 = 500;
const WINDOW: Duration = Duration::from_secs(10);
/// Time that the server takes for a request, so that twenty clients can send a thousand per second.
const WORK: Duration = Duration::from_millis(20);
/// Step of the clock.
const STEP: Duration = Duration::from_millis(5);

/// Arrival and status of each request.
type Log = Arc<Mutex<Vec<(Timestamp, u16)>>>;

async fn serve(quota: &str, headers: HeaderSet, clock: &ManualClock) -> (SocketAddr, Log) {
    let limits = RateLimitLayer::builder(Policy::builder().authenticated(quota))
        .identify_with(|_| Some(Identity::user("job")))
        .headers(headers)
        .clock(clock.clone())
        .build()
        .unwrap();
    let worked = clock.clone();
    let work = move || async move {
        let end = worked.now().saturating_add(WORK);
        worked.sleep_until(end).await;
        "done"
    };
    let app = limits.layer(Router::new().route("/", get(work)));
    let log = Log::default();
    let (entries, clock) = (Arc::clone(&log), clock.clone());
    let app = tower::service_fn(move |request: Request| {
        let (app, entries, at) = (app.clone(), Arc::clone(&entries), clock.now());
        async move {
            let response: Response = app.oneshot(request).await?;
            entries
                .lock()
                .unwrap()
                .push((at, response.status().as_u16()));
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = axum::ServiceExt::<Request>::into_make_service(app);
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, log)
}

/// Result of a run.
#[derive(Debug)]
struct RunResult {
    took: f64,
    denied: usize,
    failed: u64,
    /// Largest number of requests within a step of the clock, in the second after a reset.
    burst: usize,
}

/// Sends all requests, with one layer for all clients if `share` is set, or else with one for each.
async fn run_clients(quota: &str, headers: HeaderSet, share: bool) -> RunResult {
    let clock = ManualClock::new();
    let start = clock.now();
    let (server, log) = serve(quota, headers, &clock).await;
    let shared = PaceLayer::builder()
        .clock(clock.clone())
        .seed(0)
        .build()
        .unwrap();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let layer = if share {
                shared.clone()
            } else {
                let layer = PaceLayer::builder().clock(clock.clone());
                layer.seed(number.into()).build().unwrap()
            };
            let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
            let client = layer.layer(client);
            tokio::spawn(async move {
                let mut failed = 0;
                for _ in 0..CALLS / CLIENTS {
                    let request = http::Request::get(format!("http://{server}/"));
                    let request = request.body(Full::default()).unwrap();
                    let response = client.clone().oneshot(request).await.unwrap();
                    failed += u64::from(response.status() != 200);
                    // The body is read, so that the connection can be reused.
                    http_body_util::BodyExt::collect(response.into_body())
                        .await
                        .unwrap();
                }
                failed
            })
        })
        .collect();
    // Each client waits for the clock, or for the server, which waits for the clock.
    let failed = finish(&clock, STEP, clients).await.iter().sum();
    let log = log.lock().unwrap();
    RunResult {
        took: clock.now().duration_since(start).as_secs_f64(),
        denied: log.iter().filter(|(_, status)| *status == 429).count(),
        failed,
        burst: burst_after_reset(&log, start),
    }
}

fn burst_after_reset(log: &[(Timestamp, u16)], start: Timestamp) -> usize {
    let after_reset = log.iter().filter_map(|(at, _)| {
        let since = at.duration_since(start).as_micros();
        let window = WINDOW.as_micros();
        (since >= window && since % window < 1_000_000).then_some(since / STEP.as_micros())
    });
    let mut steps: Vec<u128> = after_reset.collect();
    steps.sort_unstable();
    steps
        .chunk_by(|a, b| a == b)
        .map(<[u128]>::len)
        .max()
        .unwrap_or(0)
}

/// When used quota becomes available again.
#[derive(Clone, Copy)]
enum Refill {
    /// All of it, at the start of the next window.
    AtOnce,
    /// Continuously, from the first request on.
    Continuous,
    /// Continuously, from the end of the first window on.
    Sliding,
}

/// Returns the shortest time for all requests: the first limit at 1,000 per second, the rest as it refills.
fn shortest(refill: Refill) -> Duration {
    let windows = WINDOW * (CALLS / LIMIT - 1);
    match refill {
        Refill::AtOnce => windows + WORK * LIMIT / CLIENTS,
        Refill::Continuous => windows,
        Refill::Sliding => windows + WINDOW,
    }
}

async fn assert_paced(name: &str, quota: &str, headers: HeaderSet, share: bool, refill: Refill) {
    let result = run_clients(quota, headers, share).await;
    let ratio = result.took / shortest(refill).as_secs_f64();
    eprintln!("{name:42} {ratio:.2} of the shortest time, {result:?}");
    assert_eq!(result.failed, 0, "{name}");
    assert!(result.denied <= 50, "{name}: {result:?}");
    // At the reset of a sliding window the whole limit is available again. The client waits for it.
    let bound = match refill {
        Refill::Sliding => 2.0,
        Refill::AtOnce | Refill::Continuous => 1.5,
    };
    assert!(ratio < bound, "{name}: {ratio}");
    assert!(result.burst <= 10, "{name}: {result:?}");
}

#[tokio::test]
async fn one_process_paces_itself_under_a_fixed_window() {
    let quota = "500 per 10 seconds, fixed-window";
    assert_paced(
        "one process, fixed window",
        quota,
        HeaderSet::Legacy,
        true,
        Refill::AtOnce,
    )
    .await;
}

#[tokio::test]
async fn twenty_processes_pace_themselves_under_a_fixed_window() {
    let quota = "500 per 10 seconds, fixed-window";
    assert_paced(
        "twenty processes, fixed window",
        quota,
        HeaderSet::Legacy,
        false,
        Refill::AtOnce,
    )
    .await;
}

#[tokio::test]
async fn twenty_processes_pace_themselves_under_a_sliding_window() {
    let quota = "500 per 10 seconds, sliding-window";
    assert_paced(
        "twenty processes, sliding window",
        quota,
        HeaderSet::Ietf,
        false,
        Refill::Sliding,
    )
    .await;
}

#[tokio::test]
async fn one_process_paces_itself_under_a_sliding_window() {
    let quota = "500 per 10 seconds, sliding-window";
    assert_paced(
        "one process, sliding window",
        quota,
        HeaderSet::Legacy,
        true,
        Refill::Sliding,
    )
    .await;
}

#[tokio::test]
async fn twenty_processes_pace_themselves_under_a_token_bucket() {
    let quota = "500 per 10 seconds, token-bucket";
    assert_paced(
        "twenty processes, token bucket",
        quota,
        HeaderSet::Legacy,
        false,
        Refill::Continuous,
    )
    .await;
}
