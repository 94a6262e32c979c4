//! What counts by outcome, once the outcome is known.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};

use super::{Admission, RequestPipeline};
use crate::error::StoreError;
use crate::store::StoreFuture;

impl RequestPipeline {
    /// Gives back what does not count, now that the response is known. If it has to be waited
    /// for, the answer comes back.
    pub(crate) fn settle<B, E>(
        &self,
        admission: &mut Admission,
        response: &Result<Response<B>, E>,
    ) -> Option<StoreFuture<()>> {
        let Admission {
            case,
            verdict,
            decision,
            trials,
        } = admission;
        let status = match response {
            Ok(response) => outcome(response),
            // Whoever handles the error will make something like it.
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut own = None;
        if let Some(usages) = verdict.as_mut().filter(|_| case.is_by_outcome()) {
            let store = self.store_of(case);
            own = case.settle(usages, status, store, self.clock.now());
            if let (Some(_), Ok(settled)) = (&own, case.decision(usages)) {
                *decision = settled.on_wall(decision.wall_offset());
            }
        }
        let tried = trials
            .iter_mut()
            .filter_map(|trial| trial.settle(status, &*self.store, &*self.clock));
        match StoreFuture::all(own.into_iter().chain(tried)).try_ready() {
            Ok(result) => {
                self.settled(result);
                None
            }
            Err(pending) => Some(pending),
        }
    }

    /// A charge could not be given back: the caller has one less. That is no reason to fail.
    pub(crate) fn settled(&self, result: Result<(), StoreError>) {
        if let Err(error) = result {
            self.watch.not_given_back(&error, self.clock.now());
        }
    }
}

/// How a request turned out. gRPC says it in a field of its own and is 200 otherwise; if that
/// comes only after the body, the request counts as one that went well.
fn outcome<B>(response: &Response<B>) -> StatusCode {
    let headers = response.headers();
    let is_grpc = |kind: &HeaderValue| kind.as_bytes().starts_with(b"application/grpc");
    if !headers.get(CONTENT_TYPE).is_some_and(is_grpc) {
        return response.status();
    }
    match headers.get("grpc-status").map(HeaderValue::as_bytes) {
        None | Some(b"0") => response.status(),
        Some(b"3" | b"9" | b"11") => StatusCode::BAD_REQUEST,
        Some(b"5") => StatusCode::NOT_FOUND,
        Some(b"6" | b"10") => StatusCode::CONFLICT,
        Some(b"7") => StatusCode::FORBIDDEN,
        Some(b"8") => StatusCode::TOO_MANY_REQUESTS,
        Some(b"14") => StatusCode::SERVICE_UNAVAILABLE,
        Some(b"16") => StatusCode::UNAUTHORIZED,
        Some(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
