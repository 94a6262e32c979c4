//! Sends requests through a service, in process.

use std::cell::RefCell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::ConnectInfo;
use http::{Request, Response, StatusCode};
use tower::Service;

use crate::heap;
use crate::work::{self, Kind};

/// Service under test, with its requests.
pub struct Side {
    pub name: &'static str,
    handle: Box<dyn Fn(usize) -> Handled>,
}

/// Result per request.
#[derive(Clone, Copy)]
pub struct Handled {
    pub nanos: f64,
    pub allocations: f64,
    /// Share of allowed requests, from 0 to 1.
    pub allowed: f64,
}

/// Requests that are created before they are handled.
const AT_ONCE: usize = 200;

impl Side {
    /// Wraps a service of axum.
    pub fn new<S>(name: &'static str, kind: Kind, service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + 'static,
    {
        let order = RefCell::new(work::order(kind));
        Self::of(name, service, move |count| {
            work::requests(kind, &mut *order.borrow_mut(), count, |extensions, peer| {
                extensions.insert(ConnectInfo(peer));
            })
        })
    }

    /// Wraps a service of axum 0.7.
    pub fn before<S>(name: &'static str, kind: Kind, service: S) -> Self
    where
        S: Service<
                Request<axum_before::body::Body>,
                Response = Response<axum_before::body::Body>,
                Error = Infallible,
            > + Clone
            + 'static,
    {
        let order = RefCell::new(work::order(kind));
        Self::of(name, service, move |count| {
            work::requests(
                kind,
                &mut *order.borrow_mut(),
                count,
                |extensions, peer: SocketAddr| {
                    extensions.insert(axum_before::extract::ConnectInfo(peer));
                },
            )
        })
    }

    fn of<S, B: 'static>(
        name: &'static str,
        service: S,
        requests: impl Fn(usize) -> Vec<Request<B>> + 'static,
    ) -> Self
    where
        S: Service<Request<B>, Response = Response<B>, Error = Infallible> + Clone + 'static,
    {
        let side = Self {
            name,
            handle: Box::new(move |count| {
                let mut allowed = 0;
                let mut time = Duration::ZERO;
                // Few at a time: a server has just read the request that it handles.
                for _ in 0..count / AT_ONCE {
                    let some = requests(AT_ONCE);
                    let started = Instant::now();
                    allowed += all(&service, some);
                    time += started.elapsed();
                }
                let some = requests(AT_ONCE);
                let allocations = heap::allocations(|| _ = all(&service, some));
                Handled {
                    nanos: time.as_secs_f64() * 1e9 / count as f64,
                    allocations: allocations as f64 / AT_ONCE as f64,
                    allowed: allowed as f64 / count as f64,
                }
            }),
        };
        // The clock checks the cycle counter of the processor before it uses it. Let that end before
        // the measurement.
        for _ in 0..3 {
            (side.handle)(AT_ONCE);
            std::thread::sleep(Duration::from_millis(60));
        }
        // Creates all counters, and uses up the small limits.
        (side.handle)(work::CLIENTS * 4 * work::SCARCE as usize);
        side
    }

    /// Handles `count` requests, one after the other.
    pub fn handle(&self, count: usize) -> Handled {
        (self.handle)(count)
    }
}

/// Sends each request through a clone of the service, as a server does. This function is what is
/// measured: `scripts/instructions-layer` selects it by name. Returns the number of allowed requests.
#[inline(never)]
fn all<S, B>(service: &S, requests: Vec<Request<B>>) -> usize
where
    S: Service<Request<B>, Response = Response<B>, Error = Infallible> + Clone,
{
    let mut context = Context::from_waker(Waker::noop());
    let mut allowed = 0;
    for request in requests {
        let mut service = service.clone();
        assert!(service.poll_ready(&mut context).is_ready());
        let Poll::Ready(Ok(response)) = pin!(service.call(request)).poll(&mut context) else {
            panic!("pending response");
        };
        allowed += usize::from(response.status() == StatusCode::OK);
    }
    allowed
}
