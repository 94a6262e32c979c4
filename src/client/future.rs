//! The future of one request: waits, sends, and retries.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Method, Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::event;
use super::host::{Host, InFlightGuard};
use super::layer::PaceState;
use super::outcome::{RefusedRequest, ResponseOutcome};
use super::replay::{ReplayBody, copy};
use super::reservation::SendReservation;
use crate::clock::Sleep;

pin_project! {
    /// Future of a [`PaceService`](super::PaceService). Returns the response of the inner service to the
    /// last attempt.
    pub struct PaceFuture<S, ReqBody>
    where
        S: Service<Request<ReqBody>>,
    {
        attempts: Attempts<S, ReqBody>,
        #[pin]
        stage: Stage<S::Future>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<F> {
        Waiting { sleep: Sleep },
        PollingReady,
        Calling { #[pin] future: F },
    }
}

/// State that is kept from one attempt to the next.
struct Attempts<S, ReqBody> {
    shared: Arc<PaceState>,
    host: Arc<Host>,
    method: Method,
    /// The service for the next attempt; `None` if there is none.
    service: Option<S>,
    /// The request of the next attempt; `None` if the body of the current one cannot be replayed.
    request: Option<Request<ReqBody>>,
    in_flight: Option<InFlightGuard>,
    /// The instant that the request waits for, until it is sent.
    reservation: Option<SendReservation>,
    retries: u32,
    /// How much longer the request may be delayed.
    remaining_wait: Duration,
}

impl<S, ReqBody, ResBody> PaceFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone,
    ReqBody: ReplayBody,
{
    /// `inner` has been polled ready.
    pub(super) fn new(shared: &Arc<PaceState>, inner: &mut S, request: Request<ReqBody>) -> Self {
        let mut attempts = Attempts {
            host: shared.host(&request),
            method: request.method().clone(),
            service: None,
            request: None,
            in_flight: None,
            reservation: None,
            retries: 0,
            remaining_wait: shared.max_wait,
            shared: Arc::clone(shared),
        };
        let stage = if let Some(sleep) = attempts.wait_for_pace(false) {
            // Releases the readiness of the inner service: a request that waits must not occupy a
            // slot that requests to other hosts need.
            attempts.service = Some(inner.clone());
            *inner = inner.clone();
            attempts.request = Some(request);
            Stage::Waiting { sleep }
        } else {
            attempts.keep_copy(&request);
            if attempts.request.is_some() {
                attempts.service = Some(inner.clone());
            }
            attempts.send();
            Stage::Calling {
                future: inner.call(request),
            }
        };
        Self { attempts, stage }
    }
}

impl<S, ReqBody: ReplayBody> Attempts<S, ReqBody> {
    /// Returns the sleep until the request may be sent, if it has to wait.
    fn wait_for_pace(&mut self, has_waited: bool) -> Option<Sleep> {
        let (shared, now) = (&self.shared, self.shared.clock.now());
        let (at, reservation) = self.host.wait_until(
            now,
            self.remaining_wait,
            has_waited,
            shared.slow_below,
            &shared.jitter,
        )?;
        self.reservation = reservation;
        self.sleep(at.duration_since(now))
            .inspect(|(_, wait)| event::wait(self.host.name(), *wait))
            .map(|(sleep, _)| sleep)
    }

    /// Returns a sleep of at most `remaining_wait`, with its duration; `None` if that is zero.
    fn sleep(&mut self, wait: Duration) -> Option<(Sleep, Duration)> {
        let wait = wait.min(self.remaining_wait);
        if wait.is_zero() {
            return None;
        }
        self.remaining_wait -= wait;
        let clock = &self.shared.clock;
        let sleep = clock.sleep_until(clock.now().saturating_add(wait));
        Some((sleep, wait))
    }

    fn keep_copy(&mut self, request: &Request<ReqBody>) {
        let may_retry = self.retries < self.shared.max_retries;
        self.request = may_retry.then(|| copy(request)).flatten();
    }

    fn send(&mut self) {
        let now = self.shared.clock.now();
        self.in_flight = Some(self.host.send(now, self.retries == 0));
        self.reservation = None;
    }

    /// Handles a response. Returns the sleep before the next attempt, if there is one.
    fn complete<B>(&mut self, response: &Response<B>) -> Option<Sleep> {
        let now = self.shared.clock.now();
        let outcome = ResponseOutcome::of(&self.method, response.status(), response.headers(), now);
        let wait = outcome.refused.map(|refused| {
            refused
                .wait
                .unwrap_or_else(|| backoff(self.retries, self.shared.jitter.fraction()))
        });
        // A 503 without `Retry-After` delays this request only.
        let blocks = |refused: RefusedRequest| refused.is_denial || refused.wait.is_some();
        let block = wait.filter(|_| outcome.refused.is_some_and(blocks));
        if let Some(in_flight) = self.in_flight.take() {
            let is_low = in_flight.complete(&outcome, block, self.shared.low_below, now);
            if let (true, Some(limits)) = (is_low, &outcome.limits) {
                self.shared.report_low(self.host.name(), limits);
            }
        }
        let (refused, wait) = (outcome.refused?, wait?);
        let (host, status) = (Arc::clone(&self.host), response.status().as_u16());
        let gave_up = |why| event::gave_up(host.name(), status, self.retries, why);
        if !refused.may_retry {
            gave_up("it may have been served");
        } else if self.retries >= self.shared.max_retries {
            gave_up("it was sent often enough");
        } else if self.request.is_none() {
            gave_up("the body cannot be sent again");
        } else if wait >= self.remaining_wait {
            gave_up("it would take too long");
        } else if !self.host.may_retry() {
            gave_up("there were too many retries");
        } else {
            return self.retry(wait, status);
        }
        None
    }

    fn retry(&mut self, wait: Duration, status: u16) -> Option<Sleep> {
        self.retries += 1;
        let spread = self.shared.jitter.part_of(super::pace::spread(wait));
        // At least 1 ms, so that a retry never follows immediately.
        let wait = wait.saturating_add(spread).max(Duration::from_millis(1));
        let (sleep, wait) = self.sleep(wait)?;
        event::retry(self.host.name(), status, self.retries, wait);
        Some(sleep)
    }
}

/// Returns the wait without `Retry-After`: 1 s, 2 s, 4 s, … up to 64 s, reduced by up to half.
fn backoff(retries: u32, fraction: f64) -> Duration {
    const MAX_EXPONENT: u32 = 6;
    let max = Duration::from_secs(1 << retries.min(MAX_EXPONENT));
    max.mul_f64(0.5 + fraction / 2.0)
}

impl<S, ReqBody, ResBody> Future for PaceFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    ReqBody: ReplayBody,
{
    type Output = Result<S::Response, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (attempts, mut stage) = (this.attempts, this.stage);
        loop {
            let next = match stage.as_mut().project() {
                StageProjection::Waiting { sleep } => {
                    ready!(sleep.as_mut().poll(context));
                    match attempts.wait_for_pace(true) {
                        Some(sleep) => Stage::Waiting { sleep },
                        None => Stage::PollingReady,
                    }
                }
                StageProjection::PollingReady => {
                    let (Some(service), Some(request)) =
                        (attempts.service.as_mut(), attempts.request.as_ref())
                    else {
                        polled_after_completion()
                    };
                    ready!(service.poll_ready(context))?;
                    let again =
                        copy(request).filter(|_| attempts.retries < attempts.shared.max_retries);
                    let Some(request) = std::mem::replace(&mut attempts.request, again) else {
                        polled_after_completion()
                    };
                    let future = service.call(request);
                    attempts.send();
                    Stage::Calling { future }
                }
                StageProjection::Calling { future } => {
                    let result = ready!(future.poll(context));
                    let again = match &result {
                        Ok(response) => attempts.complete(response),
                        Err(_) => None,
                    };
                    let Some(sleep) = again else {
                        attempts.in_flight = None;
                        return Poll::Ready(result);
                    };
                    Stage::Waiting { sleep }
                }
            };
            stage.set(next);
        }
    }
}

#[cold]
fn polled_after_completion() -> ! {
    #[expect(
        clippy::panic,
        reason = "a future may panic then; the alternative hangs"
    )]
    {
        panic!("polled after completion");
    }
}

impl<S, ReqBody> fmt::Debug for PaceFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.stage {
            Stage::Waiting { .. } => "PaceFuture(waiting)",
            Stage::PollingReady => "PaceFuture(polling ready)",
            Stage::Calling { .. } => "PaceFuture(calling)",
        })
    }
}
