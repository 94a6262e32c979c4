//! The service: asks, then calls or answers by itself.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use crate::future::ResponseFuture;
use crate::gate::{Asked, Gate, Note};
use crate::head::RequestHead;
use crate::response::DenialBody;

/// A service whose requests are limited: what [`RateLimitLayer`](crate::RateLimitLayer) makes
/// of a service.
///
/// Bodies and errors stay what they were. The body of the response has to be one that a denial
/// can be told with: [`DenialBody`].
#[derive(Clone)]
pub struct RateLimit<S> {
    inner: S,
    gate: Arc<Gate>,
}

impl<S> RateLimit<S> {
    pub(crate) const fn new(inner: S, gate: Arc<Gate>) -> Self {
        Self { inner, gate }
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
        // Not dropped here, since there is nothing to drop of the usual ways in: with nothing to
        // see to while the service is called, its future, which is large, is made where it stays.
        let asked = ManuallyDrop::new(self.gate.ask(&RequestHead::of(&request)));
        if matches!(*asked, Asked::Allowed(None)) && !self.gate.tells_handlers() {
            return ResponseFuture::calling(self.inner.call(request), None);
        }
        match ManuallyDrop::into_inner(asked) {
            Asked::Noted(note) => noted(&mut self.inner, request, note),
            Asked::Allowed(admission) => {
                let admitted = ResponseFuture::<S, _>::admit(&self.gate, admission, &mut request);
                ResponseFuture::calling(self.inner.call(request), admitted)
            }
            Asked::Denied(mut refusal) => {
                refusal.tell_decision(request.extensions_mut());
                ResponseFuture::denied(refusal.response)
            }
            Asked::Pending(pending) => {
                // The one that was polled ready goes with the request; a fresh one stays.
                let fresh = self.inner.clone();
                let ready = std::mem::replace(&mut self.inner, fresh);
                ResponseFuture::waiting(Arc::clone(&self.gate), pending, request, ready)
            }
        }
    }
}

/// Calls a service, and notes what the headers of the response are to say.
///
/// As above, there is nothing to see to while the service is called, and the future is made where
/// it stays. Should the service panic, all that is lost is the note's share in the name of a quota:
/// a few bytes, for each name, that stay when the rules are replaced.
#[inline]
fn noted<S, ReqBody>(
    service: &mut S,
    request: Request<ReqBody>,
    note: Note,
) -> ResponseFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>>,
{
    let note = ManuallyDrop::new(note);
    let future = service.call(request);
    ResponseFuture::noted(future, ManuallyDrop::into_inner(note))
}

impl<S: fmt::Debug> fmt::Debug for RateLimit<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
