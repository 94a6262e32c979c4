//! The service: sends at once, or leaves it to the future.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use super::future::PoliteFuture;
use super::layer::Shared;
use super::resend::Resend;

/// A service that sends requests politely: what [`PoliteLayer`](super::PoliteLayer) makes of
/// one that just sends them.
#[derive(Clone)]
pub struct Polite<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> Polite<S> {
    pub(super) const fn new(inner: S, shared: Arc<Shared>) -> Self {
        Self { inner, shared }
    }

    /// The service within.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The service within.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for Polite<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone,
    ReqBody: Resend,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = PoliteFuture<S, ReqBody>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        PoliteFuture::new(&self.shared, &mut self.inner, request)
    }
}

impl<S: fmt::Debug> fmt::Debug for Polite<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Polite")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
