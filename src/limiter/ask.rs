//! One question to a limiter, put together word by word.

use std::future::IntoFuture;
use std::time::Duration;

use super::{Inner, Limiter};
use crate::batch::{Batch, Check};
use crate::clock::Timestamp;
use crate::decision::{Decision, Usage};
use crate::error::{Error, Invalid};
use crate::key::Subject;
use crate::quota::Quota;
use crate::store::Answer;

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
    /// Which quota has another amount for this call.
    limit: Option<(usize, u64)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Verb {
    Check,
    Peek,
    Record,
}

impl<'a> Ask<'a> {
    #[inline]
    pub(super) fn new(limiter: &'a Limiter, subject: Subject<'a>, verb: Verb) -> Self {
        Self {
            limiter,
            subject,
            verb,
            cost: 1,
            limit: None,
        }
    }

    /// Charges this much instead of 1. A cost of 0 asks whether the limit is kept.
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// For this call, the first quota allows `amount`. What was counted stays counted.
    pub fn limit(self, amount: u64) -> Self {
        self.limit_of(0, amount)
    }

    /// For this call, the quota at `index` of [`Limiter::counters`] allows `amount`.
    pub fn limit_of(mut self, index: usize, amount: u64) -> Self {
        self.limit = Some((index, amount));
        self
    }

    /// The decision, blocking this thread until it is there. Needs no runtime, so it must not
    /// be called from a task on one unless the store is in memory.
    pub fn wait(&self) -> Result<Decision, Error> {
        if let Some(answer) = self.ask_one() {
            return match answer.as_ready() {
                Some(Ok((usage, at))) => Ok(Decision::of_one(*usage, *at, self.cost)),
                _ => answer
                    .wait()
                    .map(|(usage, at)| Decision::of_one(usage, at, self.cost)),
            }
            .map_err(Error::from);
        }
        self.ask_all().wait()
    }

    /// Asks again when there is room, for as long as `within`.
    ///
    /// Waits exactly as long as the limiter says, on its clock. Where waiting cannot help, or
    /// would take longer than that, the denial comes back at once.
    pub async fn until_ready(self, within: Duration) -> Result<Decision, Error> {
        let clock = &self.limiter.inner.clock;
        let deadline = clock.now().saturating_add(within);
        loop {
            let decision = self.ask().await?;
            let Some(wait) = decision.retry_after() else {
                return Ok(decision);
            };
            let ready_at = clock.now().saturating_add(wait);
            if ready_at > deadline {
                return Ok(decision);
            }
            clock.sleep_until(ready_at).await;
        }
    }

    pub(super) fn ask(&self) -> Answer<Decision, Error> {
        let cost = self.cost;
        match self.ask_one() {
            Some(answer) => answer.map(move |answer| {
                let (usage, at) = answer?;
                Ok(Decision::of_one(usage, at, cost))
            }),
            None => self.ask_all(),
        }
    }

    /// The short way: a charge to the only quota there is.
    #[inline]
    fn ask_one(&self) -> Option<Answer<(Usage, Timestamp)>> {
        let Inner {
            counters,
            store,
            clock,
        } = &*self.limiter.inner;
        match (&**counters, self.verb, self.limit) {
            ([counter], Verb::Check, None) => {
                let check = Check::new(&self.subject, counter).with_cost(self.cost);
                Some(store.decide_one(&check, clock.now()))
            }
            _ => None,
        }
    }

    fn ask_all(&self) -> Answer<Decision, Error> {
        let Inner {
            counters,
            store,
            clock,
        } = &*self.limiter.inner;
        let other = match self
            .limit
            .map(|(index, amount)| self.quota_with(index, amount))
            .transpose()
        {
            Ok(other) => other,
            Err(invalid) => return Answer::ready(Err(invalid.into())),
        };
        let mut checks = self.limiter.checks(&self.subject, self.cost);
        if let (Some(quota), Some((index, _))) = (&other, self.limit) {
            checks[index] = checks[index].with_quota(quota);
        }
        let batch = match Batch::new(&checks[..counters.len()]) {
            Ok(batch) => batch,
            Err(invalid) => return Answer::ready(Err(invalid.into())),
        };
        let now = clock.now();
        let answer = match self.verb {
            Verb::Check => store.decide(&batch, now),
            Verb::Peek => store.peek(&batch, now),
            Verb::Record => store.record(&batch, now),
        };
        let cost = self.cost;
        // Read where it lies, if it is there: a verdict is large.
        if let Some(Ok(verdict)) = answer.as_ready() {
            return Answer::ready(Ok(Decision::new(verdict, cost, batch.order())));
        }
        let order: Vec<_> = batch.order().collect();
        answer.map(move |verdict| Ok(Decision::new(&verdict?, cost, order.into_iter())))
    }

    #[cold]
    fn quota_with(&self, index: usize, amount: u64) -> Result<Quota, Invalid> {
        let counters = self.limiter.counters();
        let counter = counters.get(index).ok_or_else(|| {
            Invalid::new(
                "index of a per-call limit",
                index,
                format!("less than {}, the number of quotas", counters.len()),
            )
        })?;
        counter.quota().with_amount(amount)
    }
}

impl IntoFuture for Ask<'_> {
    type Output = Result<Decision, Error>;
    type IntoFuture = Answer<Decision, Error>;

    /// Puts the question.
    fn into_future(self) -> Self::IntoFuture {
        self.ask()
    }
}
