//! What is known about one host, shared by all requests to it.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::jitter::Jitter;
use super::outcome::ResponseOutcome;
use super::pace::{BLIND, Pacing, PacingInput, scatter};
use super::retry_budget::RetryBudget;
use crate::clock::Timestamp;
use crate::headers::Limits;
use crate::sync::locked;

/// How much it counts against all before it that there seem to be more of us, or fewer. To be
/// too many costs more than to be too few.
const MORE: f64 = 0.5;
const FEWER: f64 = 0.25;

/// Who is turned away has thought that there were fewer: so many times as many there are.
const SURPRISE: f64 = 1.5;

/// More than this many are never believed in.
const LARGEST_CROWD: f64 = 10_000.0;

/// The wire counts in seconds, so instants that differ by less are the same.
const ROUNDING: Duration = Duration::from_secs(1);

/// A host, or one of the callers' own keys at it.
#[derive(Debug)]
pub(super) struct Host {
    name: Box<str>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    known: Option<Known>,
    block: Option<Block>,
    /// How many requests were ever sent, and how many of them have no answer yet.
    sent: u64,
    in_flight: u64,
    last: Timestamp,
    crowd: f64,
    refills: bool,
    window: Duration,
    budget: RetryBudget,
}

/// What was told last.
#[derive(Debug)]
struct Known {
    limits: Limits,
    /// In answer to which request, and when.
    number: u64,
    at: Timestamp,
    /// How long it counts, if it does not say itself when there will be more.
    until: Timestamp,
}

/// The server has said not to come before.
#[derive(Clone, Copy, Debug)]
struct Block {
    until: Timestamp,
    length: Duration,
    since: Timestamp,
}

/// A request on its way. It is, until this is dropped.
#[derive(Debug)]
pub(super) struct InFlightGuard {
    host: Arc<Host>,
    number: u64,
    began: Timestamp,
}

impl Host {
    pub(super) fn new(name: &str, budget: RetryBudget) -> Self {
        Self {
            name: name.into(),
            state: Mutex::new(State {
                known: None,
                block: None,
                sent: 0,
                in_flight: 0,
                last: Timestamp::EPOCH,
                crowd: 1.0,
                refills: false,
                window: Duration::ZERO,
                budget,
            }),
        }
    }

    /// The host, without the callers' own key: that may be an account, or a secret.
    pub(super) fn name(&self) -> &str {
        self.name.split(' ').next().unwrap_or_default()
    }

    pub(super) fn limits(&self) -> Option<Limits> {
        self.state()
            .known
            .as_ref()
            .map(|known| known.limits.clone())
    }

    /// Until when a request has to wait, if it has to; it goes when its `patience` is over. Who
    /// `has_waited` for a turn has it, unless there is nothing left to have.
    pub(super) fn wait_until(
        &self,
        now: Timestamp,
        patience: Duration,
        has_waited: bool,
        share: f64,
        jitter: &Jitter,
    ) -> Option<Timestamp> {
        let mut state = self.state();
        if let Some(block) = state.block.filter(|block| block.until > now) {
            return Some(
                block
                    .until
                    .saturating_add(jitter.part_of(scatter(block.length))),
            );
        }
        let situation = state.situation(now)?;
        if has_waited {
            let used_up = situation.is_used_up();
            return used_up.then(|| situation.until_reset(jitter)).flatten();
        }
        match situation.turn(share, jitter) {
            Pacing::Now => None,
            Pacing::At(at) => {
                // A turn that nobody waits for would put off all who come after it.
                state.last = at.min(now.saturating_add(patience));
                Some(at)
            }
            Pacing::Later(at) => Some(at),
        }
    }

    /// A request goes.
    pub(super) fn send(self: &Arc<Self>, now: Timestamp, is_first: bool) -> InFlightGuard {
        let mut state = self.state();
        state.sent += 1;
        state.in_flight += 1;
        state.last = state.last.max(now);
        if is_first {
            state.budget.deposit();
        }
        InFlightGuard {
            host: Arc::clone(self),
            number: state.sent,
            began: now,
        }
    }

    /// Whether one more request may be sent again.
    pub(super) fn may_retry(&self) -> bool {
        self.state().budget.withdraw()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl State {
    fn situation(&self, now: Timestamp) -> Option<PacingInput<'_>> {
        let counts = |known: &&Known| known.limits.reset_at().is_some() || now < known.until;
        let known = self.known.as_ref().filter(counts)?;
        Some(PacingInput {
            limits: &known.limits,
            // Those before it are in its numbers already.
            pending: self.in_flight.min(self.sent - known.number),
            crowd: self.crowd,
            refills: self.refills,
            window: self.window,
            last: self.last,
            now,
        })
    }

    /// What can be learned from two answers about the same limit, before it resets.
    fn learn(&mut self, new: &Limits, number: u64, began: Timestamp, now: Timestamp) {
        let Some(known) = &self.known else { return };
        let old = &known.limits;
        let is_next = known.number < number && old.reset_at().is_some_and(|reset| reset > now);
        let (Some(before), Some(after)) = (old.remaining(), new.remaining()) else {
            return;
        };
        if !is_next || !old.is_about_the_same(new) {
            return;
        }
        if after >= before && began >= known.at {
            self.refills = true;
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let [before, after, ours, limit] = [
            before,
            after,
            number - known.number,
            old.limit().unwrap_or(0),
        ]
        .map(|n| n as f64);
        let window = new.window().unwrap_or(self.window).as_secs_f64();
        let regained = if self.refills && window > 0.0 {
            limit * now.duration_since(known.at).as_secs_f64() / window
        } else {
            0.0
        };
        let sample = ((before + regained - after) / ours).clamp(1.0, LARGEST_CROWD);
        let weight = if sample > self.crowd { MORE } else { FEWER };
        self.crowd += (sample - self.crowd) * weight;
    }

    /// What a denial says about the reset that was told before it.
    fn learn_from_denial(&mut self, until: Timestamp, now: Timestamp) {
        // Those that were on their way together are turned away together.
        if self.block.is_none_or(|block| block.until <= now) {
            self.crowd = (self.crowd * SURPRISE).min(LARGEST_CROWD);
        }
        let known = self.known.as_ref();
        let Some(reset) = known.and_then(|known| known.limits.reset_at()) else {
            return;
        };
        if reset > now {
            self.refills = until.saturating_add(ROUNDING) < reset;
        }
    }

    fn remember(&mut self, limits: Limits, number: u64, now: Timestamp) {
        let known = self.known.as_ref();
        // Answers may overtake each other.
        let is_old = known.is_some_and(|known| {
            known.number > number && known.limits.reset_at().is_some_and(|reset| reset > now)
        });
        if is_old {
            return;
        }
        if known.is_some_and(|known| !known.limits.is_about_the_same(&limits)) {
            self.window = Duration::ZERO;
            self.refills = false;
        }
        let away = limits.reset_at().map(|reset| reset.duration_since(now));
        self.window = self.window.max(away.unwrap_or_default());
        self.known = Some(Known {
            limits,
            number,
            at: now,
            until: now.saturating_add(BLIND),
        });
    }

    /// A request was served, without a word about limits. Some servers only tell of them when they
    /// deny: whatever was used up then is not any more.
    fn served(&mut self, number: u64, now: Timestamp) {
        if let Some(known) = self.known.as_mut().filter(|known| known.number < number) {
            known.until = known.until.min(now);
        }
    }
}

impl InFlightGuard {
    /// There is an answer, and `wait` is how long the host is to be left alone.
    pub(super) fn complete(
        self,
        outcome: &ResponseOutcome,
        wait: Option<Duration>,
        now: Timestamp,
    ) {
        let mut state = self.host.state();
        if let Some(wait) = wait {
            let until = now.saturating_add(wait);
            if outcome.refusal.is_some_and(|refusal| refusal.is_denial) {
                state.learn_from_denial(until, now);
            }
            if state.block.is_none_or(|block| block.until < until) {
                state.block = Some(Block {
                    until,
                    length: wait,
                    since: now,
                });
            }
        } else if outcome.refusal.is_none()
            && state.block.is_some_and(|block| block.since <= self.began)
        {
            // Served although it should not have been: it was not true, or is no more.
            state.block = None;
        }
        if let Some(limits) = &outcome.limits {
            if outcome.refusal.is_none() {
                state.learn(limits, self.number, self.began, now);
            }
            state.remember(limits.clone(), self.number, now);
        } else if outcome.refusal.is_none() {
            state.served(self.number, now);
        }
        drop(state);
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut state = self.host.state();
        state.in_flight = state.in_flight.saturating_sub(1);
    }
}
