//! The service: evaluates a request, then calls the inner service or rejects.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use crate::future::{ResponseFuture, State};
use crate::head::RequestHead;
use crate::pipeline::{Evaluation, RequestPipeline};
use crate::response::DenialBody;

/// Service of a [`RateLimitLayer`](crate::RateLimitLayer): limits the requests to an inner service.
///
/// Body and error types do not change. The response body must implement [`DenialBody`].
#[derive(Clone)]
pub struct RateLimit<S> {
    inner: S,
    pipeline: Arc<RequestPipeline>,
}

impl<S> RateLimit<S> {
    pub(crate) const fn new(inner: S, pipeline: Arc<RequestPipeline>) -> Self {
        Self { inner, pipeline }
    }

    /// Returns the inner service.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns the inner service.
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
        let pipeline = &self.pipeline;
        let state = match pipeline.evaluate(&RequestHead::of(&request)) {
            Evaluation::Pass(admission) => {
                pipeline.extend_request(admission.as_deref(), request.extensions_mut());
                // Returned here: after the `match`, the future would be copied once more.
                return ResponseFuture {
                    state: State::Calling {
                        future: self.inner.call(request),
                        admission,
                    },
                };
            }
            Evaluation::Reject(rejection) => State::rejected(rejection, request),
            Evaluation::Pending(pending) => {
                // The service that was polled ready goes with the request; a clone stays.
                let clone = self.inner.clone();
                let ready = std::mem::replace(&mut self.inner, clone);
                State::deciding(Arc::clone(pipeline), pending, request, ready)
            }
        };
        ResponseFuture { state }
    }
}

impl<S: fmt::Debug> fmt::Debug for RateLimit<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
