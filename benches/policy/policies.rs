//! Policies of any size, and requests to what they are for.

use http::{Method, Request, Response};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::Full;
use tollgate::headers::HeaderSet;
use tollgate::identity::PeerAddr;
use tollgate::policy::{Policy, Rule};
use tollgate::{RateLimit, RateLimitLayer};
use tower::{Layer, Service, service_fn};

pub type Body = Full<Bytes>;
type Handler = fn(Request<Body>) -> Ready<Result<Response<Body>, Infallible>>;

/// A layer whose policy has so many endpoints, around a service that does nothing.
///
/// They share one counter, so that all that differs is which endpoint a request has.
pub struct Limited(RateLimit<tower::util::ServiceFn<Handler>>);

impl Limited {
    pub fn new(endpoints: usize) -> Self {
        let mut policy = Policy::builder().category("all", Rule::new("1_000_000_000/day"));
        for number in 0..endpoints / 2 {
            let [literal, parameter] = routes(number);
            policy = policy
                .endpoint(format!("POST {literal}"), Rule::in_category("all"))
                .endpoint(format!("GET {parameter}{{id}}"), Rule::in_category("all"));
        }
        let layer = RateLimitLayer::builder(policy)
            .headers(HeaderSet::None)
            .build()
            .expect("a valid layer");
        let handler: Handler = |_| ready(Ok(Response::new(Body::default())));
        Self(layer.layer(service_fn(handler)))
    }

    /// Each request through a clone of the service, as a server does it.
    pub fn handle(&self, requests: Vec<Request<Body>>) {
        let mut context = Context::from_waker(Waker::noop());
        for request in requests {
            let mut service = self.0.clone();
            assert!(service.poll_ready(&mut context).is_ready());
            let response = pin!(service.call(request)).poll(&mut context);
            let Poll::Ready(Ok(response)) = response else {
                panic!("nothing here has to wait");
            };
            assert!(response.status().is_success());
        }
    }
}

/// One path that is written out, and one that ends in a parameter.
fn routes(number: usize) -> [String; 2] {
    [
        format!("/v1/service-{number:04}/login"),
        format!("/v1/service-{number:04}/items/"),
    ]
}

/// Route of a request.
#[derive(Clone, Copy)]
pub enum Wanted {
    Literal,
    Parameter,
    Nothing,
}

impl Wanted {
    pub const ALL: [(Self, &str); 3] = [
        (Self::Literal, "literal"),
        (Self::Parameter, "parameter"),
        (Self::Nothing, "unmatched"),
    ];

    /// So many requests to so many endpoints, each to another one of them than the one before.
    pub fn requests(self, endpoints: usize, count: usize) -> Vec<Request<Body>> {
        // Odd, so that neighbours come from far apart.
        let numbers = (0..count).map(|n| n.wrapping_mul(7_919) % (endpoints / 2));
        let request = |number: usize| {
            let [literal, parameter] = routes(number);
            let (method, path) = match self {
                Self::Literal => (Method::POST, literal),
                Self::Parameter => (Method::GET, format!("{parameter}4711")),
                Self::Nothing => (Method::GET, format!("{parameter}4711/more")),
            };
            let client = PeerAddr::from(SocketAddr::from(([203, 0, 113, 9], 50_000)));
            let request = Request::builder()
                .method(method)
                .uri(path)
                .extension(client);
            request.body(Body::default()).expect("a valid request")
        };
        numbers.map(request).collect()
    }
}
