//! Layers that are watched, and one that is not, around a service that does nothing.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use tollgate::headers::HeaderSet;
use tollgate::identity::PeerAddr;
use tollgate::{RateLimit, RateLimitLayer};
use tower::{Layer, Service, service_fn};

type Body = Full<Bytes>;
type Handler = fn(Request<Body>) -> Ready<Result<Response<Body>, Infallible>>;

/// Who watches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    Nothing,
    Statistics,
    /// And metrics, which Prometheus records.
    Metrics,
}

/// A layer, and who watches it.
pub struct Watched {
    service: RateLimit<tower::util::ServiceFn<Handler>>,
    /// Metrics are recorded until it is dropped.
    _recorder: PrometheusRecorder,
}

/// How many clients there are.
const CLIENTS: u32 = 1_000;

impl Watched {
    /// `quota` is per address.
    pub fn new(by: By, quota: &str, headers: HeaderSet) -> Self {
        let builder = RateLimitLayer::builder(quota).headers(headers);
        let builder = match by {
            By::Nothing => builder.without_statistics(),
            By::Statistics | By::Metrics => builder,
        };
        let layer = builder.build().expect("a valid layer");
        let handler: Handler = |_| ready(Ok(Response::new(Body::default())));
        let watched = Self {
            service: layer.layer(service_fn(handler)),
            _recorder: PrometheusBuilder::new().build_recorder(),
        };
        // A metric is bound to the recorder that is installed at its first use.
        let begin = || watched.handle(requests(0..CLIENTS));
        match by {
            By::Metrics => metrics::with_local_recorder(&watched._recorder, begin),
            By::Nothing | By::Statistics => begin(),
        }
        watched
    }

    /// Each request through a clone of the service, as a server does it.
    pub fn handle(&self, requests: Vec<Request<Body>>) {
        let mut context = Context::from_waker(Waker::noop());
        for request in requests {
            let mut service = self.service.clone();
            assert!(service.poll_ready(&mut context).is_ready());
            let response = pin!(service.call(request)).poll(&mut context);
            let Poll::Ready(Ok(response)) = response else {
                panic!("nothing here has to wait");
            };
            assert!(response.status() != StatusCode::INTERNAL_SERVER_ERROR);
        }
    }
}

/// One request from each of these clients.
pub fn requests(clients: std::ops::Range<u32>) -> Vec<Request<Body>> {
    let request = |client: u32| {
        let mut request = Request::new(Body::default());
        *request.uri_mut() = http::Uri::from_static("/v1/items/4711");
        let address = Ipv4Addr::from(0x0a00_0000 + client);
        let peer = PeerAddr(SocketAddr::new(address.into(), 50_000));
        request.extensions_mut().insert(peer);
        request
    };
    clients.map(request).collect()
}

/// So many requests from all clients in turn.
pub fn in_turn(count: u32) -> Vec<Request<Body>> {
    let all = (0..count).map(|number| number % CLIENTS);
    all.flat_map(|client| requests(client..client + 1))
        .collect()
}
