//! Twenty clients, one limit, five thousand calls: over sockets, against our own server, on a
//! clock that both sides share and that only moves when all tasks wait.

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
/// How long the server takes for a call, so that twenty clients can do a thousand a second.
const WORK: Duration = Duration::from_millis(20);
/// How the clock moves.
const STEP: Duration = Duration::from_millis(5);

/// When each request came, and how it was answered.
type Log = Arc<Mutex<Vec<(Timestamp, u16)>>>;

async fn serve(quota: &str, headers: HeaderSet, clock: &ManualClock) -> (SocketAddr, Log) {
    let limits = RateLimitLayer::builder(Policy::builder().authenticated(quota))
        .identify_with(|_| Some(Identity::user("the job")))
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
    let (came, clock) = (Arc::clone(&log), clock.clone());
    let app = tower::service_fn(move |request: Request| {
        let (app, came, at) = (app.clone(), Arc::clone(&came), clock.now());
        async move {
            let response: Response = app.oneshot(request).await?;
            came.lock().unwrap().push((at, response.status().as_u16()));
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = axum::ServiceExt::<Request>::into_make_service(app);
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, log)
}

/// What a job came to.
#[derive(Debug)]
struct Job {
    took: f64,
    denied: usize,
    given_up: u64,
    /// The most requests that came within a step of the clock in the second after a reset.
    rush: usize,
}

/// All calls, by clients that know of each other if they `share` a layer, or do not.
async fn job(quota: &str, headers: HeaderSet, share: bool) -> Job {
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
                let mut given_up = 0;
                for _ in 0..CALLS / CLIENTS {
                    let request = http::Request::get(format!("http://{server}/"));
                    let request = request.body(Full::default()).unwrap();
                    let response = client.clone().oneshot(request).await.unwrap();
                    given_up += u64::from(response.status() != 200);
                    // So that the connection can be used again.
                    http_body_util::BodyExt::collect(response.into_body())
                        .await
                        .unwrap();
                }
                given_up
            })
        })
        .collect();
    // Each client either waits for its turn, or for the server, which waits for the clock.
    let given_up = finish(&clock, STEP, clients).await.iter().sum();
    let log = log.lock().unwrap();
    Job {
        took: clock.now().duration_since(start).as_secs_f64(),
        denied: log.iter().filter(|(_, status)| *status == 429).count(),
        given_up,
        rush: rush(&log, start),
    }
}

fn rush(log: &[(Timestamp, u16)], start: Timestamp) -> usize {
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

/// How a limit comes back.
#[derive(Clone, Copy)]
enum Comes {
    /// All at once, with the next window.
    AtOnce,
    /// All the time, from the first request on.
    AllTheTime,
    /// All the time, from the end of the first window on.
    Sliding,
}

/// The least that it takes: what is there at once, at a thousand a second; then as it comes.
fn best(comes: Comes) -> Duration {
    let windows = WINDOW * (CALLS / LIMIT - 1);
    match comes {
        Comes::AtOnce => windows + WORK * LIMIT / CLIENTS,
        Comes::AllTheTime => windows,
        Comes::Sliding => windows + WINDOW,
    }
}

async fn shows(name: &str, quota: &str, headers: HeaderSet, share: bool, comes: Comes) {
    let job = job(quota, headers, share).await;
    let ratio = job.took / best(comes).as_secs_f64();
    eprintln!("{name:42} {ratio:.2} of the best time, {job:?}");
    assert_eq!(job.given_up, 0, "{name}");
    assert!(job.denied <= 50, "{name}: {job:?}");
    assert!(ratio < 1.5, "{name}: {ratio}");
    assert!(job.rush <= 10, "{name}: {job:?}");
}

#[tokio::test]
async fn a_job_of_one_process_against_a_fixed_window() {
    let quota = "500 per 10 seconds, fixed-window";
    shows(
        "one process, fixed window",
        quota,
        HeaderSet::Legacy,
        true,
        Comes::AtOnce,
    )
    .await;
}

#[tokio::test]
async fn a_job_of_twenty_processes_against_a_fixed_window() {
    let quota = "500 per 10 seconds, fixed-window";
    shows(
        "twenty processes, fixed window",
        quota,
        HeaderSet::Legacy,
        false,
        Comes::AtOnce,
    )
    .await;
}

#[tokio::test]
async fn a_job_of_twenty_processes_against_a_sliding_window() {
    let quota = "500 per 10 seconds, sliding-window";
    shows(
        "twenty processes, sliding window",
        quota,
        HeaderSet::Ietf,
        false,
        Comes::Sliding,
    )
    .await;
}

#[tokio::test]
async fn a_job_of_one_process_against_a_sliding_window() {
    let quota = "500 per 10 seconds, sliding-window";
    shows(
        "one process, sliding window",
        quota,
        HeaderSet::Legacy,
        true,
        Comes::Sliding,
    )
    .await;
}

#[tokio::test]
async fn a_job_of_twenty_processes_against_a_token_bucket() {
    let quota = "500 per 10 seconds, token-bucket";
    shows(
        "twenty processes, token bucket",
        quota,
        HeaderSet::Legacy,
        false,
        Comes::AllTheTime,
    )
    .await;
}
