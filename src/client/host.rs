//! State of one host, shared by all requests to it.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::jitter::Jitter;
use super::outcome::ResponseOutcome;
use super::pace::{MAX_BACKOFF, Pacing, PacingInput, spread};
use super::reservation::{ReservedInstants, SendReservation};
use super::retry_budget::RetryBudget;
use crate::clock::Timestamp;
use crate::headers::Limits;
use crate::sync::locked;

/// A host, or one key of the application at it.
#[derive(Debug)]
pub(super) struct Host {
    name: Box<str>,
    state: Mutex<HostState>,
}

#[derive(Debug)]
struct HostState {
    known: Option<KnownLimits>,
    /// Whether less than the share of the callback remains of `known`.
    is_low: bool,
    block: Option<Block>,
    /// Requests sent so far, and those without a response.
    sent: u64,
    in_flight: u64,
    last_sent: Timestamp,
    reserved: ReservedInstants,
    budget: RetryBudget,
}

/// The limits of the latest response.
#[derive(Debug)]
struct KnownLimits {
    limits: Limits,
    /// The number of its request.
    number: u64,
    /// Limits without a reset are ignored from this instant on.
    until: Timestamp,
}

/// No request is sent before `until`: the server sent `Retry-After`, or a limit that is used up.
#[derive(Clone, Copy, Debug)]
struct Block {
    until: Timestamp,
    length: Duration,
    since: Timestamp,
}

/// A request in flight. Dropping it ends the request, with or without a response.
#[derive(Debug)]
pub(super) struct InFlightGuard {
    host: Arc<Host>,
    number: u64,
    sent_at: Timestamp,
}

impl Host {
    pub(super) fn new(name: &str, budget: RetryBudget) -> Self {
        Self {
            name: name.into(),
            state: Mutex::new(HostState {
                known: None,
                is_low: false,
                block: None,
                sent: 0,
                in_flight: 0,
                last_sent: Timestamp::EPOCH,
                reserved: ReservedInstants::default(),
                budget,
            }),
        }
    }

    /// Returns the host without the key of the application, which may be an account or a secret.
    pub(super) fn name(&self) -> &str {
        self.name.split(' ').next().unwrap_or_default()
    }

    pub(super) fn limits(&self) -> Option<Limits> {
        self.state()
            .known
            .as_ref()
            .map(|known| known.limits.clone())
    }

    /// Returns when a request may be sent, if it has to wait, and the instant that it has reserved. The
    /// request is sent after `max_wait` in any case. One that `has_waited` waits again only for a block,
    /// or if nothing remains.
    pub(super) fn wait_until(
        self: &Arc<Self>,
        now: Timestamp,
        max_wait: Duration,
        has_waited: bool,
        share: f64,
        jitter: &Jitter,
    ) -> Option<(Timestamp, Option<SendReservation>)> {
        let mut state = self.state();
        if let Some(block) = state.block.filter(|block| block.until > now) {
            let jitter = jitter.part_of(spread(block.length));
            return Some((block.until.saturating_add(jitter), None));
        }
        let input = state.pacing_input(now)?;
        if has_waited {
            return Some((input.used_up_until(jitter)?, None));
        }
        match input.next(share, jitter) {
            Pacing::Now => None,
            Pacing::Reserved(at) => {
                // A later instant would delay all requests after one that does not wait that long.
                let reserved = at.min(now.saturating_add(max_wait));
                state.reserved.insert(reserved);
                let host = Arc::clone(self);
                Some((at, Some(SendReservation { host, at: reserved })))
            }
            Pacing::AfterReset(at) => Some((at, None)),
        }
    }

    /// Frees a reserved instant.
    pub(super) fn release(&self, at: Timestamp) {
        self.state().reserved.remove(at);
    }

    /// Counts a request that is sent now.
    pub(super) fn send(self: &Arc<Self>, now: Timestamp, is_first: bool) -> InFlightGuard {
        let mut state = self.state();
        state.sent += 1;
        state.in_flight += 1;
        state.last_sent = state.last_sent.max(now);
        if is_first {
            state.budget.deposit();
        }
        InFlightGuard {
            host: Arc::clone(self),
            number: state.sent,
            sent_at: now,
        }
    }

    /// Takes one retry from the budget. Returns whether there was one.
    pub(super) fn may_retry(&self) -> bool {
        self.state().budget.withdraw()
    }

    fn state(&self) -> MutexGuard<'_, HostState> {
        locked(&self.state)
    }
}

impl HostState {
    fn pacing_input(&self, now: Timestamp) -> Option<PacingInput<'_>> {
        let is_valid = |known: &&KnownLimits| known.limits.reset_at.is_some() || now < known.until;
        let known = self.known.as_ref().filter(is_valid)?;
        Some(PacingInput {
            limits: &known.limits,
            // Requests before it are in its limits already.
            pending: self.in_flight.min(self.sent - known.number),
            last: self.reserved.last().unwrap_or_default().max(self.last_sent),
            now,
        })
    }

    /// Returns whether the limits are stored and low, and those before were not.
    fn store(&mut self, limits: Limits, number: u64, low_below: f64, now: Timestamp) -> bool {
        // Responses may overtake each other.
        let is_outdated = self.known.as_ref().is_some_and(|known| {
            known.number > number && known.limits.reset_at.is_some_and(|reset| reset > now)
        });
        if is_outdated {
            return false;
        }
        let was_low = std::mem::replace(&mut self.is_low, is_low(&limits, low_below));
        self.known = Some(KnownLimits {
            limits,
            number,
            until: now.saturating_add(MAX_BACKOFF),
        });
        self.is_low && !was_low
    }

    /// Handles a served request without limits in its response. Some servers send limits only with
    /// denials: those are over.
    fn served_without_limits(&mut self, number: u64, now: Timestamp) {
        if let Some(known) = self.known.as_mut().filter(|known| known.number < number) {
            known.until = known.until.min(now);
        }
    }
}

impl InFlightGuard {
    /// Handles the response. `wait` is how long no request may be sent to the host. Returns whether less
    /// than `low_below` of the limit remains now, and did not before.
    pub(super) fn complete(
        self,
        outcome: &ResponseOutcome,
        wait: Option<Duration>,
        low_below: f64,
        now: Timestamp,
    ) -> bool {
        let mut state = self.host.state();
        if let Some(wait) = wait {
            let until = now.saturating_add(wait);
            if state.block.is_none_or(|block| block.until < until) {
                state.block = Some(Block {
                    until,
                    length: wait,
                    since: now,
                });
            }
        } else if outcome.refused.is_none()
            && state.block.is_some_and(|block| block.since <= self.sent_at)
        {
            // A request that was sent during the block was served: the block is over.
            state.block = None;
        }
        if let Some(limits) = &outcome.limits {
            return state.store(limits.clone(), self.number, low_below, now);
        }
        if outcome.refused.is_none() {
            state.served_without_limits(self.number, now);
        }
        drop(state);
        false
    }
}

/// Returns whether less than this share of a limit remains.
#[expect(clippy::cast_precision_loss, reason = "a share of the limit")]
fn is_low(limits: &Limits, share: f64) -> bool {
    match (limits.remaining, limits.limit) {
        (Some(remaining), Some(limit)) => (remaining as f64) < limit as f64 * share,
        _ => false,
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut state = self.host.state();
        state.in_flight = state.in_flight.saturating_sub(1);
    }
}
