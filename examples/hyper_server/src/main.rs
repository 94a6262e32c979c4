//! The layer around a hyper service, without axum.
//!
//! ```sh
//! cargo run -p example-hyper-server
//! curl -i 'http://127.0.0.1:3000/items/[1-6]'
//! curl -i --http2-prior-knowledge http://127.0.0.1:3000/
//! ```
//!
//! Settings: `PORT` (default 3000; 0 is any free port) and `REDIS_URL` (default: count in memory).

#[path = "../../common/mod.rs"]
mod common;

use std::convert::Infallible;
use std::error::Error;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tollgate::RateLimitLayer;
use tollgate::identity::PeerAddr;
use tollgate::policy::{Policy, Rule};
use tower::ServiceBuilder;

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    let (status, text) = match path.strip_prefix("/items/") {
        Some(item) => (StatusCode::OK, format!("item {item}\n")),
        None if matches!(path, "/" | "/health") => (StatusCode::OK, "fine\n".to_owned()),
        None => (StatusCode::NOT_FOUND, "nothing here\n".to_owned()),
    };
    // Over HTTP/2, hyper would send a body in response to HEAD.
    let body = if request.method() == Method::HEAD {
        Full::default()
    } else {
        Full::from(text)
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    Ok(response)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Without a router, the layer matches paths itself.
    let policy = Policy::builder()
        .everyone("20/minute")
        .endpoint("GET /items/{id}", Rule::new("5/minute").name("items"))
        .exempt_route("GET /health");
    let limits = RateLimitLayer::builder(policy)
        .store(common::store("hyper-server", Duration::from_millis(50)).await)
        .build()?;

    let (listener, stop) = common::listen().await;
    let server = async {
        serve(&listener, &limits, stop.received()).await;
        Ok::<(), Infallible>(())
    };
    let shutdown = |deadline| limits.shutdown(deadline);
    Ok(stop.clone().run(server, shutdown).await?)
}

/// Accepts connections until `stopped` completes. Then waits for the requests in progress.
async fn serve(listener: &TcpListener, limits: &RateLimitLayer, stopped: impl Future<Output = ()>) {
    let server = auto::Builder::new(TokioExecutor::new());
    let connections = GracefulShutdown::new();
    let mut stopped = pin!(stopped);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stopped => break,
        };
        let Ok((stream, peer)) = accepted else {
            // Usually out of file descriptors. Try again when connections have ended.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // hyper does not provide the peer address; the layer needs it.
        let service = ServiceBuilder::new()
            .map_request(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(PeerAddr(peer));
                request
            })
            .layer(limits.clone())
            .service_fn(answer);
        let connection =
            server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        let connection = connections.watch(connection.into_owned());
        tokio::spawn(async move {
            // Errors of a connection affect only its client.
            let _ = connection.await;
        });
    }
    connections.shutdown().await;
}
