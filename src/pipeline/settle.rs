//! Charges that depend on the response.

use http::header::{ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};

use super::context::with_checks;
use super::{Admission, RequestPipeline};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::store::StoreFuture;
use crate::usage::{Outcome, Usage, Usages};

impl Admission {
    /// Refunds what does not count, now that the response is known. Returns a future if the store
    /// answers later.
    pub(crate) fn settle<B, E>(
        &mut self,
        response: &Result<Response<B>, E>,
    ) -> Option<StoreFuture<()>> {
        let pipeline = self.pipeline.clone()?;
        let now = pipeline.now();
        let status = match response {
            Ok(response) => outcome(response),
            // An outer layer usually turns the error into this response.
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let is_refunded_preflight =
            self.context.planned.is_preflight && response.as_ref().is_ok_and(has_cors_headers);
        let refund = self.refund(&pipeline, status, is_refunded_preflight, now);
        let record = (!is_refunded_preflight)
            .then(|| self.record_global(&pipeline, status, now))
            .flatten();
        match StoreFuture::all(refund.into_iter().chain(record)).try_ready() {
            Ok(result) => {
                pipeline.settled(result);
                None
            }
            Err(future) => Some(future),
        }
    }

    /// Reports a refund that the store answered later.
    pub(crate) fn settled(&self, result: Result<(), StoreError>) {
        if let Some(pipeline) = &self.pipeline {
            pipeline.settled(result);
        }
    }

    /// Refunds the checks that the response does not count on, in one batch. Updates the
    /// usages and the decision accordingly.
    fn refund(
        &mut self,
        pipeline: &RequestPipeline,
        status: StatusCode,
        is_refunded_preflight: bool,
        now: Timestamp,
    ) -> Option<StoreFuture<()>> {
        let Self {
            snapshot,
            context,
            usages,
            ..
        } = self;
        let policy = &snapshot.policy;
        let mut refunded = [false; crate::MAX_BATCH];
        for (index, check) in context.checks().iter().enumerate() {
            let is_excluded = if is_refunded_preflight {
                !policy.is_preflight_quota(check)
            } else {
                !policy.counts(&context.planned, check, status)
            };
            refunded[index] = is_excluded && context.is_charged(usages, index);
        }
        if !refunded.contains(&true) {
            return None;
        }
        let charged_at = usages.at();
        let mut settled = Usages::with_live(usages.live().len(), charged_at);
        for (index, usage) in usages.usages().iter().enumerate() {
            settled.push(if refunded[index] {
                let quota = context.quota(snapshot, index);
                let is_whole_again = quota.algorithm().is_whole_again();
                refunded_usage(
                    usage,
                    context.checks()[index].cost,
                    is_whole_again,
                    charged_at,
                )
            } else {
                *usage
            });
        }
        let answer = context.with_batch(
            snapshot,
            |index, check| refunded[index].then_some(check.cost),
            |batch| pipeline.store_of(context).refund(batch, charged_at, now),
        );
        let decision = context.decision(snapshot, &settled);
        self.decision = decision.on_wall(self.decision.wall_offset());
        self.usages = settled;
        Some(answer)
    }

    /// Charges the global rule of a preflight whose response has no CORS headers.
    fn record_global(
        &self,
        pipeline: &RequestPipeline,
        status: StatusCode,
        now: Timestamp,
    ) -> Option<StoreFuture<()>> {
        let Self {
            snapshot, context, ..
        } = self;
        let (policy, caller) = (&snapshot.policy, context.caller());
        let recorded = &context.planned.recorded;
        let quotas: Vec<_> = recorded
            .iter()
            .map(|check| pipeline.quota_of(snapshot, context, check, now))
            .collect();
        let checks = recorded.iter().zip(&quotas);
        let checks = checks.filter(|(check, _)| policy.counts(&context.planned, check, status));
        let checks = checks.map(|(check, quota)| (check, quota, check.cost));
        checks.clone().next()?;
        let store = pipeline.store_of(context);
        let answer = with_checks(policy, &caller, checks, |batch| store.record(batch, now));
        Some(answer.map(|usages| usages.map(drop)))
    }
}

impl RequestPipeline {
    /// Reports a failed refund or charge. The response is not affected.
    fn settled(&self, result: Result<(), StoreError>) {
        if let Err(error) = result {
            self.telemetry.refund_failed(&error, self.now());
        }
    }
}

/// Returns a usage without a charge of `cost`.
fn refunded_usage(usage: &Usage, cost: u64, is_whole_again: bool, charged_at: Timestamp) -> Usage {
    let used = usage.used().saturating_sub(cost);
    let reset_at = if used == 0 && is_whole_again {
        charged_at
    } else {
        usage.reset_at()
    };
    Usage::new(usage.limit(), used, reset_at, Outcome::Allowed)
}

/// Returns whether a response answers a preflight.
fn has_cors_headers<B>(response: &Response<B>) -> bool {
    let headers = response.headers();
    headers.contains_key(ACCESS_CONTROL_ALLOW_METHODS)
        || headers.contains_key(ACCESS_CONTROL_ALLOW_HEADERS)
}

/// Returns the status that a response counts as. gRPC has a status of its own and is 200 otherwise;
/// if it comes only after the body, the request counts as successful.
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
