//! Requests over loopback: how many in a second, and how long the slowest of a hundred takes.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use axum::ServiceExt as _;
use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tollgate::headers::HeaderSet;
use tollgate_bench::{Args, Duel, Report, Row, Target, median, turns};
use tower::{Layer as _, Service};

use crate::ours;
use crate::router::bare;
use crate::rows::sides::BARE;
use crate::theirs::{axum_governor, tower_governor};
use crate::work::{AMPLE, PATH};

const ID: &str = "loopback/allow";

/// Connections that are kept open, each with one request at a time.
const CONNECTIONS: usize = 16;
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(700);

#[derive(Clone, Copy)]
struct Pace {
    per_second: f64,
    p99_micros: f64,
}

pub fn all(args: &Args, report: &mut Report) -> io::Result<()> {
    if !args.wants(ID) {
        return Ok(());
    }
    let outside = ours::layer(HeaderSet::None).layer(bare());
    let servers = [
        serve(bare())?,
        serve(bare().layer(ours::layer(HeaderSet::None)))?,
        serve(bare().layer(ours::layer(HeaderSet::Legacy)))?,
        serve(outside)?,
        serve(bare().layer(tower_governor::layer(AMPLE)))?,
        serve(bare().layer(tower_governor::with_headers(AMPLE)))?,
        serve(bare().layer(axum_governor::layer(AMPLE)))?,
    ];
    let client = runtime()?;
    let mut sides: Vec<Box<dyn FnMut() -> Pace>> = Vec::new();
    for server in servers {
        let client = &client;
        sides.push(Box::new(move || client.block_on(send_all(server))));
    }
    let paces = turns(ROUNDS, &mut sides);
    let middle = |side: usize| Pace {
        per_second: median(paces[side].iter().map(|pace| pace.per_second).collect()),
        p99_micros: median(paces[side].iter().map(|pace| pace.p99_micros).collect()),
    };
    let [bare, plain, headers, outside] = [0, 1, 2, 3].map(middle);
    let [tower, tower_headers, axum] = [4, 5, 6].map(middle);

    // Nine tenths of what it is without.
    let aim = Some(Target {
        at_most: 1.111,
        stretch: None,
    });
    for (name, ours, peer, theirs, target) in [
        ("", plain, BARE, bare, aim),
        ("/outside-router", outside, BARE, bare, aim),
        ("/headers", headers, BARE, bare, aim),
        ("", plain, tower_governor::NAME, tower, None),
        (
            "/headers",
            headers,
            tower_governor::NAME,
            tower_headers,
            None,
        ),
        ("/headers", headers, axum_governor::NAME, axum, None),
    ] {
        let rates = Duel {
            ours: ours.per_second,
            theirs: theirs.per_second,
        };
        let id = format!("{ID}{name}");
        report.add(Row::of_rates(&id, peer, "/s", rates).with_target(target))?;
        let slowest = Duel {
            ours: ours.p99_micros,
            theirs: theirs.p99_micros,
        };
        report.add(Row::new(&format!("{id}/p99"), peer, "µs", slowest))?;
    }
    Ok(())
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Serves until the process ends, on a thread of its own.
fn serve<S>(service: S) -> io::Result<SocketAddr>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    let runtime = runtime()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    let service = service.into_make_service_with_connect_info::<SocketAddr>();
    thread::spawn(move || runtime.block_on(async { axum::serve(listener, service).await }));
    Ok(address)
}

/// Sends requests over all connections, the next one as soon as a response arrives.
async fn send_all(server: SocketAddr) -> Pace {
    let mut connections = JoinSet::new();
    let started = Instant::now();
    for _ in 0..CONNECTIONS {
        connections.spawn(send_until(server, started + ROUND));
    }
    let mut waits: Vec<f64> = connections.join_all().await.concat();
    let per_second = waits.len() as f64 / started.elapsed().as_secs_f64();
    waits.sort_by(f64::total_cmp);
    Pace {
        per_second,
        p99_micros: waits[waits.len() * 99 / 100],
    }
}

/// One request after the other over one connection; how long each took, in microseconds.
async fn send_until(server: SocketAddr, end: Instant) -> Vec<f64> {
    let stream = TcpStream::connect(server).await.expect("a server");
    stream.set_nodelay(true).expect("a socket");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .expect("a connection");
    tokio::spawn(connection);
    let mut waits = Vec::with_capacity(20_000);
    while Instant::now() < end {
        let request = Request::get(PATH)
            .header("host", "api.example.com")
            .body(Empty::<Bytes>::new())
            .expect("a request");
        let sent = Instant::now();
        let response = sender.send_request(request).await.expect("a response");
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.expect("a body");
        waits.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    waits
}
