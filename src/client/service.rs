//! The service of [`PaceLayer`](super::PaceLayer).

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use super::future::PaceFuture;
use super::layer::PaceState;
use super::replay::ReplayBody;

/// Service of a [`PaceLayer`](super::PaceLayer).
#[derive(Clone)]
pub struct PaceService<S> {
    inner: S,
    shared: Arc<PaceState>,
}

impl<S> PaceService<S> {
    pub(super) const fn new(inner: S, shared: Arc<PaceState>) -> Self {
        Self { inner, shared }
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for PaceService<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone,
    ReqBody: ReplayBody,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = PaceFuture<S, ReqBody>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        PaceFuture::new(&self.shared, &mut self.inner, request)
    }
}

impl<S: fmt::Debug> fmt::Debug for PaceService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PaceService")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
