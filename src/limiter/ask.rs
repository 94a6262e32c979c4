//! One question to a limiter, put together word by word.

use std::future::IntoFuture;
use std::time::Duration;

use super::in_force::InForce;
use super::{Inner, Limiter};
use crate::batch::Batch;
use crate::clock::{Clock, Timestamp};
use crate::decision::Decision;
use crate::error::{Error, Invalid};
use crate::key::Subject;
use crate::quota::Quota;
use crate::store::{StoreFuture, block_on};

/// A question that has not been put yet: `.await` it, [`wait`](Ask::wait) for it, or say more
/// first.
///
/// ```
/// use tollgate::Limiter;
///
/// let limiter = Limiter::new("10/minute")?;
/// let decision = limiter.check("alice").cost(3).limit(5).wait()?;
/// assert_eq!((decision.limit(), decision.remaining()), (5, 2));
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is asked before it is awaited or waited for"]
pub struct Ask<'a> {
    limiter: &'a Limiter,
    subject: Subject<'a>,
    verb: Verb,
    cost: u64,
    instead: Instead<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Check,
    Peek,
    Record,
}

/// What applies for this call instead of the limiter's quotas.
#[derive(Clone, Copy, Debug)]
enum Instead<'a> {
    Nothing,
    /// Another amount for the first.
    Amount(u64),
    /// Another quota for each.
    Quotas(&'a [Quota]),
}

impl<'a> Ask<'a> {
    #[inline]
    pub(super) fn new(limiter: &'a Limiter, subject: Subject<'a>, verb: Verb) -> Self {
        Self {
            limiter,
            subject,
            verb,
            cost: 1,
            instead: Instead::Nothing,
        }
    }

    /// Charges this much instead of 1. A cost of 0 asks whether the limit is kept.
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// For this call, the first quota allows `amount`, whatever was
    /// [set at run time](Limiter::set_override); the burst of a token bucket changes in
    /// proportion. What was counted stays counted.
    pub fn limit(mut self, amount: u64) -> Self {
        self.instead = Instead::Amount(amount);
        self
    }

    /// For this call, these quotas apply, in the order of [`Limiter::counters`]: a tier, an
    /// override, `unlimited` or `blocked`. What was counted stays counted, so windows and
    /// algorithms must be the same.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::builder().quota("10/minute").quota("100/hour").build()?;
    /// let team = [Quota::per_minute(50)?, Quota::unlimited()];
    /// let decision = limiter.check("alice").quotas(&team).wait()?;
    /// assert_eq!(decision.limit(), 50);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn quotas(mut self, quotas: &'a [Quota]) -> Self {
        self.instead = Instead::Quotas(quotas);
        self
    }

    /// The decision, blocking this thread until it is there. Needs no runtime, so it must not
    /// be called from a task on one unless the store is in memory.
    #[inline]
    pub fn wait(&self) -> Result<Decision, Error> {
        self.ask().wait()
    }

    /// Asks again when there is room, for as long as `within`.
    ///
    /// Waits exactly as long as the limiter says, on its clock. Where waiting cannot help, or
    /// would take longer than that, the denial comes back at once; so does the answer to
    /// [`peek`](Limiter::peek) and [`record`](Limiter::record), which have nothing to wait
    /// for.
    pub async fn until_ready(self, within: Duration) -> Result<Decision, Error> {
        let wait = |decision: &Decision| match self.verb {
            Verb::Check => decision.retry_after(),
            Verb::Peek | Verb::Record => None,
        };
        ask_until_ready(&*self.limiter.inner.clock, within, || self.ask(), wait).await
    }

    /// [`until_ready`](Ask::until_ready) where there is no runtime, blocking this thread.
    pub fn wait_until_ready(self, within: Duration) -> Result<Decision, Error> {
        block_on(self.until_ready(within))
    }

    pub(super) fn ask(&self) -> StoreFuture<Decision, Error> {
        let now = self.limiter.inner.clock.now();
        self.in_force(now)
            .and_then(|in_force| self.ask_under(&in_force, now))
            .unwrap_or_else(|invalid| StoreFuture::ready(Err(invalid.into())))
    }

    /// The quotas that this call is about.
    pub(super) fn in_force(&self, now: Timestamp) -> Result<InForce<'a>, Invalid> {
        let counters = self.limiter.counters();
        match self.instead {
            Instead::Nothing => Ok(self.limiter.in_force(&self.subject, now)),
            Instead::Amount(amount) => InForce::amount(counters, amount),
            Instead::Quotas(quotas) => InForce::each(counters, quotas),
        }
    }

    /// Asks about these quotas and no others.
    pub(super) fn ask_under(
        &self,
        in_force: &InForce<'_>,
        now: Timestamp,
    ) -> Result<StoreFuture<Decision, Error>, Invalid> {
        let Inner {
            counters, store, ..
        } = &*self.limiter.inner;
        let mut checks = self.limiter.checks(&self.subject, self.cost);
        let checks = &mut checks[..counters.len()];
        in_force.apply(checks);
        let batch = Batch::new(checks)?;
        let answer = match self.verb {
            Verb::Check => store.decide(&batch, now),
            Verb::Peek => store.peek(&batch, now),
            Verb::Record => store.record(&batch, now),
        };
        let (verb, cost) = (self.verb, self.cost);
        let offset = self.limiter.inner.wall_offset();
        let note = move |decision: Decision| {
            let charged = match verb {
                Verb::Check if decision.is_allowed() => cost,
                Verb::Check | Verb::Peek => 0,
                Verb::Record => cost,
            };
            decision.with_charged(charged).on_wall(offset)
        };
        // Read where it lies, if it is there: a verdict is large.
        if let Some(Ok(verdict)) = answer.as_ready() {
            let decision = Decision::new(verdict, batch.order()).map(note);
            return Ok(StoreFuture::ready(decision.map_err(Error::from)));
        }
        let order: Vec<_> = batch.order().collect();
        Ok(answer.map(move |verdict| Ok(Decision::new(&verdict?, order.into_iter()).map(note)?)))
    }

    pub(super) const fn limiter(&self) -> &'a Limiter {
        self.limiter
    }

    pub(super) const fn subject(&self) -> &Subject<'a> {
        &self.subject
    }
}

/// Asks again and again, as long as `wait` says that waiting helps and there is time for it.
pub(super) async fn ask_until_ready<T: Unpin>(
    clock: &dyn Clock,
    within: Duration,
    ask: impl Fn() -> StoreFuture<T, Error>,
    wait: impl Fn(&T) -> Option<Duration>,
) -> Result<T, Error> {
    let deadline = clock.now().saturating_add(within);
    loop {
        let answer = ask().await?;
        let Some(wait) = wait(&answer) else {
            return Ok(answer);
        };
        let ready_at = clock.now().saturating_add(wait);
        if ready_at > deadline {
            return Ok(answer);
        }
        clock.sleep_until(ready_at).await;
    }
}

impl IntoFuture for Ask<'_> {
    type Output = Result<Decision, Error>;
    type IntoFuture = StoreFuture<Decision, Error>;

    /// Puts the question.
    fn into_future(self) -> Self::IntoFuture {
        self.ask()
    }
}
