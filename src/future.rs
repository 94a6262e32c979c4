//! The response, from the decision on.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::error::StoreError;
use crate::head::RequestHead;
use crate::pipeline::{Admission, Evaluation, Pending, RequestPipeline, StoreOutcome};
use crate::response::DenialBody;
use crate::store::StoreFuture;

pin_project! {
    /// The response of a [`RateLimit`](crate::RateLimit): that of the service within, or a
    /// denial.
    pub struct ResponseFuture<S, ReqBody>
    where
        S: Service<Request<ReqBody>>,
    {
        #[pin]
        state: State<S, ReqBody>,
    }
}

pin_project! {
    #[project = Now]
    enum State<S, ReqBody>
    where
        S: Service<Request<ReqBody>>,
    {
        // On the heap, since it is already the slow way.
        Waiting {
            waiting: Option<Box<Waiting<S, ReqBody>>>,
        },
        Calling {
            #[pin]
            future: S::Future,
            admitted: Option<Admitted>,
        },
        Settling {
            answer: StoreFuture<()>,
            admitted: Option<Admitted>,
            response: Option<Result<S::Response, S::Error>>,
        },
        Denied {
            response: Option<Response<Bytes>>,
        },
    }
}

struct Waiting<S, ReqBody> {
    pipeline: Arc<RequestPipeline>,
    pending: Box<Pending>,
    request: Request<ReqBody>,
    service: S,
}

/// A request that went on, and whose response has to be seen to.
///
/// The pipeline is there if there is something to settle: otherwise all requests would change its
/// reference count.
pub(crate) struct Admitted {
    pipeline: Option<Arc<RequestPipeline>>,
    admission: Box<Admission>,
}

impl<S, ReqBody> ResponseFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>>,
{
    pub(crate) const fn calling(future: S::Future, admitted: Option<Admitted>) -> Self {
        Self {
            state: State::Calling { future, admitted },
        }
    }

    pub(crate) const fn denied(response: Response<Bytes>) -> Self {
        Self {
            state: State::Denied {
                response: Some(response),
            },
        }
    }

    pub(crate) fn waiting(
        pipeline: Arc<RequestPipeline>,
        pending: Box<Pending>,
        request: Request<ReqBody>,
        service: S,
    ) -> Self {
        let waiting = Waiting {
            pipeline,
            pending,
            request,
            service,
        };
        Self {
            state: State::Waiting {
                waiting: Some(Box::new(waiting)),
            },
        }
    }

    /// Tells the handler, if it is to be told.
    #[inline]
    pub(crate) fn admit(
        pipeline: &Arc<RequestPipeline>,
        admission: Option<Box<Admission>>,
        request: &mut Request<ReqBody>,
    ) -> Option<Admitted> {
        if pipeline.tells_handlers() {
            let (decision, charge) = pipeline.for_handlers(admission.as_deref());
            request.extensions_mut().insert(decision);
            request.extensions_mut().insert(charge);
        }
        admission.map(|admission| Admitted {
            pipeline: admission.awaits_outcome().then(|| Arc::clone(pipeline)),
            admission,
        })
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
                Now::Waiting { waiting } => {
                    let judged = match waiting {
                        Some(waiting) => ready!(Pin::new(&mut waiting.pending).poll(context)),
                        None => polled_after_the_end(),
                    };
                    match waiting.take() {
                        Some(waiting) => waiting.go_on(judged),
                        None => polled_after_the_end(),
                    }
                }
                Now::Calling { future, admitted } => {
                    if admitted.is_none() {
                        return future.poll(context);
                    }
                    let mut response = ready!(future.poll(context));
                    let Some(mut admitted) = admitted.take() else {
                        polled_after_the_end()
                    };
                    let Some(answer) = admitted.settle(&response) else {
                        admitted.annotate(&mut response);
                        return Poll::Ready(response);
                    };
                    State::Settling {
                        answer,
                        admitted: Some(admitted),
                        response: Some(response),
                    }
                }
                Now::Settling {
                    answer,
                    admitted,
                    response,
                } => {
                    let settled = ready!(Pin::new(answer).poll(context));
                    match (response.take(), admitted.take()) {
                        (Some(mut response), Some(admitted)) => {
                            admitted.settled(settled);
                            admitted.annotate(&mut response);
                            return Poll::Ready(response);
                        }
                        _ => polled_after_the_end(),
                    }
                }
                Now::Denied { response } => match response.take() {
                    Some(response) => return Poll::Ready(Ok(response.map(ResBody::from_bytes))),
                    None => polled_after_the_end(),
                },
            };
            state.set(next);
        }
    }
}

impl<S, ReqBody> Waiting<S, ReqBody>
where
    S: Service<Request<ReqBody>>,
{
    /// The answer is there.
    fn go_on(self, judged: StoreOutcome) -> State<S, ReqBody> {
        let Self {
            pipeline,
            mut request,
            mut service,
            ..
        } = self;
        match pipeline.conclude(judged, &RequestHead::of(&request)) {
            Evaluation::Allowed(admission) => {
                let admitted = ResponseFuture::<S, _>::admit(&pipeline, admission, &mut request);
                State::Calling {
                    future: service.call(request),
                    admitted,
                }
            }
            Evaluation::Denied(mut rejection) => {
                rejection.tell_decision(request.extensions_mut());
                State::Denied {
                    response: Some(rejection.response),
                }
            }
            Evaluation::Pending(pending) => State::Waiting {
                waiting: Some(Box::new(Self {
                    pipeline,
                    pending,
                    request,
                    service,
                })),
            },
        }
    }
}

impl Admitted {
    /// Settles what depends on the response. If it has to be waited for, the answer comes back.
    #[inline]
    fn settle<B, E>(&mut self, response: &Result<Response<B>, E>) -> Option<StoreFuture<()>> {
        self.pipeline
            .as_ref()?
            .settle(&mut self.admission, response)
    }

    fn settled(&self, settled: Result<(), StoreError>) {
        if let Some(pipeline) = &self.pipeline {
            pipeline.settled(settled);
        }
    }

    fn annotate<B, E>(&self, response: &mut Result<Response<B>, E>) {
        if let Ok(response) = response {
            self.admission.annotate(response.headers_mut());
        }
    }
}

#[cold]
fn polled_after_the_end() -> ! {
    #[expect(clippy::panic, reason = "as every future may; the alternative hangs")]
    {
        panic!("a response was polled after it was given");
    }
}

impl<S, ReqBody> fmt::Debug for ResponseFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            State::Waiting { .. } => "ResponseFuture(waiting)",
            State::Calling { .. } => "ResponseFuture(calling)",
            State::Settling { .. } => "ResponseFuture(settling)",
            State::Denied { .. } => "ResponseFuture(denied)",
        })
    }
}
