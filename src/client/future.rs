//! One request: wait, send, and perhaps again.

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
use super::layer::Shared;
use super::outcome::{Refusal, ResponseOutcome};
use super::replay::{ReplayBody, copy};
use crate::clock::Sleep;

pin_project! {
    /// The response of a [`PaceService`](super::PaceService) service: that of the service within, to the
    /// last time that the request was sent.
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
    #[project = Now]
    enum Stage<F> {
        Waiting { sleep: Sleep },
        Readying,
        Calling { #[pin] future: F },
    }
}

/// What goes on from one attempt to the next.
struct Attempts<S, ReqBody> {
    shared: Arc<Shared>,
    host: Arc<Host>,
    method: Method,
    /// To call, unless it was called at once and cannot be called again.
    service: Option<S>,
    /// To be sent next; what is on its way has left a copy here, if it could.
    request: Option<Request<ReqBody>>,
    in_flight: Option<InFlightGuard>,
    retries: u32,
    /// How much longer it may be held back.
    patience: Duration,
}

impl<S, ReqBody, ResBody> PaceFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone,
    ReqBody: ReplayBody,
{
    /// `inner` has been polled ready.
    pub(super) fn new(shared: &Arc<Shared>, inner: &mut S, request: Request<ReqBody>) -> Self {
        let mut attempts = Attempts {
            host: shared.host(&request),
            method: request.method().clone(),
            service: None,
            request: None,
            in_flight: None,
            retries: 0,
            patience: shared.max_wait,
            shared: Arc::clone(shared),
        };
        let stage = if let Some(sleep) = attempts.wait_for_turn(false) {
            // What was reserved is given back meanwhile: a request that waits should not take up
            // the room of those to other hosts.
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
    /// What to sleep on, if it is not yet its turn.
    fn wait_for_turn(&mut self, has_waited: bool) -> Option<Sleep> {
        let (shared, now) = (&self.shared, self.shared.clock.now());
        let turn = self.host.wait_until(
            now,
            self.patience,
            has_waited,
            shared.slow_below,
            &shared.jitter,
        )?;
        self.sleep(turn.duration_since(now))
            .inspect(|(_, wait)| event::wait(self.host.name(), *wait))
            .map(|(sleep, _)| sleep)
    }

    /// Sleeps for so long, or as long as there is patience. Without any, not at all.
    fn sleep(&mut self, wait: Duration) -> Option<(Sleep, Duration)> {
        let wait = wait.min(self.patience);
        if wait.is_zero() {
            return None;
        }
        self.patience -= wait;
        let clock = &self.shared.clock;
        let sleep = clock.sleep_until(clock.now().saturating_add(wait));
        Some((sleep, wait))
    }

    fn keep_copy(&mut self, request: &Request<ReqBody>) {
        let may_come_again = self.retries < self.shared.max_retries;
        self.request = may_come_again.then(|| copy(request)).flatten();
    }

    fn send(&mut self) {
        let now = self.shared.clock.now();
        self.in_flight = Some(self.host.send(now, self.retries == 0));
    }

    /// Notes what a response says. If the request is to be sent again: when.
    fn complete<B>(&mut self, response: &Response<B>) -> Option<Sleep> {
        let now = self.shared.clock.now();
        let outcome = ResponseOutcome::of(&self.method, response.status(), response.headers(), now);
        let wait = outcome.refusal.map(|refusal| {
            let told = refusal.wait;
            told.unwrap_or_else(|| backoff(self.retries, self.shared.jitter.fraction()))
        });
        // A server in trouble that does not say how long is no reason to leave it alone.
        let is_told = |refusal: Refusal| refusal.is_denial || refusal.wait.is_some();
        let block = wait.filter(|_| outcome.refusal.is_some_and(is_told));
        if let Some(in_flight) = self.in_flight.take() {
            in_flight.complete(&outcome, block, now);
        }
        let (refusal, wait) = (outcome.refusal?, wait?);
        let (host, status) = (Arc::clone(&self.host), response.status().as_u16());
        let gave_up = |why| event::gave_up(host.name(), status, self.retries, why);
        if !refusal.may_retry {
            gave_up("it may have been served");
        } else if self.retries >= self.shared.max_retries {
            gave_up("it was sent often enough");
        } else if self.request.is_none() {
            gave_up("the body cannot be sent again");
        } else if wait >= self.patience {
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
        let scatter = self.shared.jitter.part_of(super::pace::scatter(wait));
        // Never at once.
        let wait = wait.saturating_add(scatter).max(Duration::from_millis(1));
        let (sleep, wait) = self.sleep(wait)?;
        event::retry(self.host.name(), status, self.retries, wait);
        Some(sleep)
    }
}

/// Where the server does not say how long: a second, then two, four, … each cut short by chance.
fn backoff(retries: u32, chance: f64) -> Duration {
    const LONGEST: u32 = 6;
    let most = Duration::from_secs(1 << retries.min(LONGEST));
    most.mul_f64(0.5 + chance / 2.0)
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
                Now::Waiting { sleep } => {
                    ready!(sleep.as_mut().poll(context));
                    match attempts.wait_for_turn(true) {
                        Some(sleep) => Stage::Waiting { sleep },
                        None => Stage::Readying,
                    }
                }
                Now::Readying => {
                    let (Some(service), Some(request)) =
                        (attempts.service.as_mut(), attempts.request.as_ref())
                    else {
                        polled_after_the_end()
                    };
                    ready!(service.poll_ready(context))?;
                    let again =
                        copy(request).filter(|_| attempts.retries < attempts.shared.max_retries);
                    let Some(request) = std::mem::replace(&mut attempts.request, again) else {
                        polled_after_the_end()
                    };
                    let future = service.call(request);
                    attempts.send();
                    Stage::Calling { future }
                }
                Now::Calling { future } => {
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
fn polled_after_the_end() -> ! {
    #[expect(clippy::panic, reason = "as every future may; the alternative hangs")]
    {
        panic!("a response was polled after it was given");
    }
}

impl<S, ReqBody> fmt::Debug for PaceFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.stage {
            Stage::Waiting { .. } => "PaceFuture(waiting)",
            Stage::Readying => "PaceFuture(readying)",
            Stage::Calling { .. } => "PaceFuture(calling)",
        })
    }
}
