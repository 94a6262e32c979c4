//! A client that paces its requests to the limits in the responses of a server.
//!
//! ```sh
//! cargo run --example polite_client --features client
//! cargo run --example polite_client --features client -- http://127.0.0.1:3000/
//! ```
//!
//! Without a URL (as an argument, or in `TARGET_URL`) it starts a server that allows 30 requests in 3
//! seconds. It sends `CALLS` requests (default 100) from `CLIENTS` concurrent tasks (default 4).

mod common;

use std::env;
use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tollgate::client::PaceLayer;
use tollgate::{Clock, Identity, RateLimitLayer, SystemClock};
use tower::{Layer, ServiceExt};

const CALLS: &str = "a number from 1 to 1000000";
const CLIENTS: &str = "a number from 1 to 1000";
const ADDRESS: &str = "an address such as http://127.0.0.1:3000/";

/// Parses a URL without TLS.
fn address(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok()?;
    (uri.scheme_str() == Some("http")).then_some(uri)
}

/// Returns the given URL, or that of a server that is started here.
async fn target() -> Result<Uri, Box<dyn Error>> {
    if let Some(argument) = env::args().nth(1) {
        let refused = || common::refuse("the argument", &argument, ADDRESS);
        return Ok(address(&argument).unwrap_or_else(refused));
    }
    if env::var_os("TARGET_URL").is_some() {
        return Ok(common::setting("TARGET_URL", "", ADDRESS, address));
    }
    let limits = RateLimitLayer::builder("30 per 3 seconds, fixed-window")
        .identify_with(|_| Some(Identity::user("you")))
        .build()?;
    let app = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .layer(limits);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, app).await });
    common::print("no URL given: started a server that allows 30 requests per 3 seconds\n");
    Ok(format!("http://{server}/").parse()?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let within = |text: &str, most| text.parse().ok().filter(|n| (1..=most).contains(n));
    let calls: u32 = common::setting("CALLS", "100", CALLS, |text| within(text, 1_000_000));
    let clients: u32 = common::setting("CLIENTS", "4", CLIENTS, |text| within(text, 1_000));
    let target = target().await?;
    let host = target
        .authority()
        .map(ToString::to_string)
        .unwrap_or_default();

    // One layer for all tasks, so that they share what responses report about the limits.
    let polite = PaceLayer::builder()
        .max_wait(Duration::from_secs(90))
        .build()?;
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let client = polite.layer(client);

    let clock = SystemClock::new();
    let start = clock.now();
    let seconds = |clock: &SystemClock| clock.now().duration_since(start).as_secs_f64();
    let mut jobs = JoinSet::new();
    for number in 0..clients {
        let (client, target) = (client.clone(), target.clone());
        let share = calls / clients + u32::from(number < calls % clients);
        jobs.spawn(async move {
            let (mut served, mut denied) = (0, 0);
            for _ in 0..share {
                let request = Request::get(target.clone()).body(Full::default())?;
                let response = client.clone().oneshot(request).await?;
                if response.status() == 429 {
                    denied += 1;
                } else {
                    served += 1;
                }
                // Read to its end, so that the connection can be used again.
                response.into_body().collect().await?;
            }
            Ok::<_, Box<dyn Error + Send + Sync>>((served, denied))
        });
    }

    let mut every_second = tokio::time::interval(Duration::from_secs(1));
    let (mut served, mut denied) = (0, 0);
    loop {
        tokio::select! {
            job = jobs.join_next() => match job {
                Some(result) => {
                    let (some, others) = result?.map_err(|error| error as Box<dyn Error>)?;
                    served += some;
                    denied += others;
                }
                None => break,
            },
            _ = every_second.tick() => {
                let limits = polite.limits(&host);
                let left = limits.as_ref().and_then(|limits| limits.remaining);
                let limit = limits.as_ref().and_then(|limits| limits.limit);
                if let (Some(left), Some(limit)) = (left, limit) {
                    common::print(&format!("{:5.1} s: {left} of {limit} left\n", seconds(&clock)));
                }
            }
        }
    }
    let took = seconds(&clock);
    common::print(&format!(
        "{served} of {calls} calls served in {took:.1} s, {denied} denied after retries\n"
    ));
    Ok(())
}
