//! The response future: decide, call, settle.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::head::RequestHead;
use crate::pipeline::{Admission, PendingDecision, Rejection, RequestPipeline};
use crate::response::DenialBody;
use crate::store::StoreFuture;

pin_project! {
    /// Response of a [`RateLimit`](crate::RateLimit): that of the inner service, or a rejection.
    ///
    /// Dropping it drops the inner call. A charge that was made stays.
    pub struct ResponseFuture<S, ReqBody>
    where
        S: Service<Request<ReqBody>>,
    {
        #[pin]
        pub(crate) state: State<S, ReqBody>,
    }
}

pin_project! {
    #[project = StateProjection]
    pub(crate) enum State<S, ReqBody>
    where
        S: Service<Request<ReqBody>>,
    {
        Deciding {
            waiting: Option<Box<PendingRequest<S, ReqBody>>>,
        },
        Calling {
            #[pin]
            future: S::Future,
            admission: Option<Box<Admission>>,
        },
        Settling {
            refund: StoreFuture<()>,
            admission: Option<Box<Admission>>,
            response: Option<Result<S::Response, S::Error>>,
        },
        Rejected {
            response: Option<Response<Bytes>>,
        },
    }
}

/// A request whose decision is pending.
pub(crate) struct PendingRequest<S, ReqBody> {
    pipeline: Arc<RequestPipeline>,
    /// `None` after completion.
    pending: Option<PendingDecision>,
    request: Request<ReqBody>,
    service: S,
}

impl<S, ReqBody> State<S, ReqBody>
where
    S: Service<Request<ReqBody>>,
{
    /// Waits for a decision. `service` has been polled ready.
    pub(crate) fn deciding(
        pipeline: Arc<RequestPipeline>,
        pending: PendingDecision,
        request: Request<ReqBody>,
        service: S,
    ) -> Self {
        let waiting = PendingRequest {
            pipeline,
            pending: Some(pending),
            request,
            service,
        };
        Self::Deciding {
            waiting: Some(Box::new(waiting)),
        }
    }

    /// Responds with a rejection.
    pub(crate) fn rejected(mut rejection: Rejection, mut request: Request<ReqBody>) -> Self {
        rejection.extend_response(request.extensions_mut());
        Self::Rejected {
            response: Some(rejection.response),
        }
    }
}

impl<S, ReqBody> PendingRequest<S, ReqBody> {
    fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Box<Admission>>, Rejection>> {
        let head = RequestHead::of(&self.request);
        self.pipeline
            .poll_pending(&mut self.pending, &head, context)
    }
}

impl<S, ReqBody, ResBody> Future for ResponseFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    ResBody: DenialBody,
{
    type Output = Result<S::Response, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProjection::Deciding { waiting } => {
                    let Some(pending) = waiting else {
                        polled_after_completion()
                    };
                    let decided = ready!(pending.poll(context));
                    let Some(waiting) = waiting.take() else {
                        polled_after_completion()
                    };
                    let PendingRequest {
                        pipeline,
                        mut request,
                        mut service,
                        ..
                    } = *waiting;
                    match decided {
                        Ok(admission) => {
                            pipeline.extend_request(admission.as_deref(), request.extensions_mut());
                            State::Calling {
                                future: service.call(request),
                                admission,
                            }
                        }
                        Err(rejection) => State::rejected(rejection, request),
                    }
                }
                StateProjection::Calling { future, admission } => {
                    if admission.is_none() {
                        return future.poll(context);
                    }
                    let mut response = ready!(future.poll(context));
                    let Some(mut admitted) = admission.take() else {
                        polled_after_completion()
                    };
                    let Some(refund) = admitted.settle(&response) else {
                        annotate(&admitted, &mut response);
                        return Poll::Ready(response);
                    };
                    State::Settling {
                        refund,
                        admission: Some(admitted),
                        response: Some(response),
                    }
                }
                StateProjection::Settling {
                    refund,
                    admission,
                    response,
                } => {
                    let settled = ready!(Pin::new(refund).poll(context));
                    let (Some(mut response), Some(admission)) = (response.take(), admission.take())
                    else {
                        polled_after_completion()
                    };
                    admission.settled(settled);
                    annotate(&admission, &mut response);
                    return Poll::Ready(response);
                }
                StateProjection::Rejected { response } => match response.take() {
                    Some(response) => return Poll::Ready(Ok(response.map(ResBody::from_bytes))),
                    None => polled_after_completion(),
                },
            };
            state.set(next);
        }
    }
}

/// Adds the rate-limit headers, unless the inner service has failed.
fn annotate<B, E>(admission: &Admission, response: &mut Result<Response<B>, E>) {
    if let Ok(response) = response {
        admission.annotate(response.headers_mut());
    }
}

#[cold]
fn polled_after_completion() -> ! {
    #[expect(clippy::panic, reason = "as every future may; the alternative hangs")]
    {
        panic!("a response was polled after its completion");
    }
}

impl<S, ReqBody> fmt::Debug for ResponseFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            State::Deciding { .. } => "ResponseFuture(deciding)",
            State::Calling { .. } => "ResponseFuture(calling)",
            State::Settling { .. } => "ResponseFuture(settling)",
            State::Rejected { .. } => "ResponseFuture(rejected)",
        })
    }
}
