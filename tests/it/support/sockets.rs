//! Servers and clients on real sockets, over HTTP/1 and HTTP/2.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Uri};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;

use super::http::{Answer, request};

/// Protocol of a client. HTTP/2 is used with prior knowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http1,
    Http2,
}

pub(crate) const VERSIONS: [Version; 2] = [Version::Http1, Version::Http2];

/// Client with its own connection pool.
pub(crate) struct Client {
    inner: legacy::Client<HttpConnector, Body>,
    server: SocketAddr,
}

impl Client {
    pub(crate) fn new(version: Version, server: SocketAddr) -> Self {
        Self::from(Ipv4Addr::LOCALHOST.into(), version, server)
    }

    /// Creates a client whose connections come from `address`.
    pub(crate) fn from(address: IpAddr, version: Version, server: SocketAddr) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_local_address(Some(address));
        let inner = legacy::Client::builder(TokioExecutor::new())
            .http2_only(version == Version::Http2)
            .build(connector);
        Self { inner, server }
    }

    /// Sends a request without body: `GET /path` and headers.
    pub(crate) async fn send(&self, line: &str, headers: &[(&str, &str)]) -> Answer {
        self.send_request(request(line, headers)).await
    }

    /// Sends a request whose URI has no authority yet.
    pub(crate) async fn send_request(&self, mut request: Request<Body>) -> Answer {
        let uri = Uri::builder()
            .scheme("http")
            .authority(self.server.to_string())
            .path_and_query(request.uri().path_and_query().unwrap().clone());
        *request.uri_mut() = uri.build().unwrap();
        let response = self.inner.request(request).await.unwrap();
        Answer::read(response.map(Body::new)).await
    }
}

/// Returns up to three loopback addresses. Only Linux has more than one without configuration.
pub(crate) fn addresses() -> Vec<IpAddr> {
    (1..=3)
        .map(|last| IpAddr::from([127, 0, 0, last]))
        .filter(|address| std::net::TcpListener::bind((*address, 0)).is_ok())
        .collect()
}

/// Binds a free port of the loopback interface.
pub(crate) async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Serves a router with the addresses of its peers, until the runtime of the test ends.
pub(crate) async fn serve(app: Router) -> SocketAddr {
    let (listener, address) = listener().await;
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}
