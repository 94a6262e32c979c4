//! The service: asks, then calls or answers by itself.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use crate::future::ResponseFuture;
use crate::head::RequestHead;
use crate::pipeline::{Evaluation, RequestPipeline};
use crate::response::DenialBody;

/// A service whose requests are limited: what [`RateLimitLayer`](crate::RateLimitLayer) makes
/// of a service.
///
/// Bodies and errors stay what they were. The body of the response has to be one that a denial
/// can be told with: [`DenialBody`].
#[derive(Clone)]
pub struct RateLimit<S> {
    inner: S,
    pipeline: Arc<RequestPipeline>,
}

impl<S> RateLimit<S> {
    pub(crate) const fn new(inner: S, pipeline: Arc<RequestPipeline>) -> Self {
        Self { inner, pipeline }
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

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for RateLimit<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone,
    ResBody: DenialBody,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S, ReqBody>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<ReqBody>) -> Self::Future {
        match self.pipeline.evaluate(&RequestHead::of(&request)) {
            Evaluation::Allowed(admission) => {
                let admitted =
                    ResponseFuture::<S, _>::admit(&self.pipeline, admission, &mut request);
                ResponseFuture::calling(self.inner.call(request), admitted)
            }
            Evaluation::Denied(mut rejection) => {
                rejection.tell_decision(request.extensions_mut());
                ResponseFuture::denied(rejection.response)
            }
            Evaluation::Pending(pending) => {
                // The one that was polled ready goes with the request; a fresh one stays.
                let fresh = self.inner.clone();
                let ready = std::mem::replace(&mut self.inner, fresh);
                ResponseFuture::waiting(Arc::clone(&self.pipeline), pending, request, ready)
            }
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for RateLimit<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
