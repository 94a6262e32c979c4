//! One call of a limiter: [`CheckBuilder`].

use std::future::IntoFuture;
use std::time::Duration;

use smallvec::SmallVec;

use super::Limiter;
use super::effective_quotas::EffectiveQuotas;
use crate::batch::MAX_CHECKS;
use crate::clock::{self, Clock, Timestamp};
use crate::decision::Decision;
use crate::error::{Error, ValidationError};
use crate::key::{OwnedSubject, Subject};
use crate::quota::Quota;
use crate::store::{self, OverrideStore, StoreFuture, block_on};
use crate::usage::Usages;

/// A check that has not been sent yet: set options, then `.await` it or [`wait`](CheckBuilder::wait).
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
#[must_use = "nothing is checked until it is awaited or waited for"]
pub struct CheckBuilder<'a> {
    limiter: &'a Limiter,
    subject: Subject<'a>,
    operation: Operation,
    cost: u64,
    replacement: Replacement<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Check,
    Peek,
    Record,
}

/// Quotas of this call in place of the limiter's.
#[derive(Clone, Copy, Debug)]
enum Replacement<'a> {
    None,
    /// Another amount of the first quota.
    Amount(u64),
    /// Another quota for each counter.
    Quotas(&'a [Quota]),
}

impl<'a> CheckBuilder<'a> {
    #[inline]
    pub(super) fn new(limiter: &'a Limiter, subject: Subject<'a>, operation: Operation) -> Self {
        Self {
            limiter,
            subject,
            operation,
            cost: 1,
            replacement: Replacement::None,
        }
    }

    /// Sets the cost. Default: 1. With 0, nothing is charged, and the check is allowed unless the limit is
    /// exceeded.
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// For this call, the first quota allows `amount`, whatever was
    /// [set at run time](Limiter::set_override). The burst of a token bucket changes in proportion.
    /// The counter stays the same.
    pub fn limit(mut self, amount: u64) -> Self {
        self.replacement = Replacement::Amount(amount);
        self
    }

    /// For this call, these quotas apply, in the order of [`Limiter::counters`]: a tier, an
    /// override, `unlimited` or `blocked`. The counters stay the same, so windows and algorithms must be
    /// the limiter's.
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
        self.replacement = Replacement::Quotas(quotas);
        self
    }

    /// Returns the decision, blocking this thread until it is known. Needs no runtime, so it must not
    /// be called from a task on one unless the store is in memory.
    #[inline]
    pub fn wait(&self) -> Result<Decision, Error> {
        self.send().wait()
    }

    /// Repeats the check until it is allowed, for at most `within`.
    ///
    /// Waits for the [`retry_after`](Decision::retry_after) of the decision, on the limiter's clock. If waiting cannot help, or
    /// would take longer, the denial is returned at once. So is the result of
    /// [`peek`](Limiter::peek) and [`record`](Limiter::record), which have nothing to wait for.
    pub async fn until_ready(self, within: Duration) -> Result<Decision, Error> {
        let wait = |decision: &Decision| match self.operation {
            Operation::Check => decision.retry_after(),
            Operation::Peek | Operation::Record => None,
        };
        repeat_until_ready(&*self.limiter.shared.clock, within, || self.send(), wait).await
    }

    /// [`until_ready`](CheckBuilder::until_ready) where there is no runtime, blocking this thread.
    pub fn wait_until_ready(self, within: Duration) -> Result<Decision, Error> {
        block_on(self.until_ready(within))
    }

    pub(super) fn send(&self) -> StoreFuture<Decision, Error> {
        let overrides = self.limiter.override_store();
        if let Some(loading) = self.loading_overrides(overrides) {
            fn send(check: &CheckBuilder<'_>) -> StoreFuture<Decision, Error> {
                check.send()
            }
            return self.send_after(loading, send);
        }
        let now = self.limiter.now();
        let mut first = None;
        match self.effective_quotas(overrides, now, &mut first) {
            Ok(quotas) => self.send_under(&quotas, now),
            Err(invalid) => StoreFuture::ready(Err(invalid.into())),
        }
    }

    /// Returns the first load of the overrides if it is not done and this call depends on it. What was used
    /// is recorded in any case: it must be charged also if the future is dropped.
    #[inline]
    pub(super) fn loading_overrides(
        &self,
        overrides: Option<&dyn OverrideStore>,
    ) -> Option<StoreFuture<()>> {
        let overrides = overrides?;
        let is_loading = overrides.table().is_loading();
        let waits = is_loading
            && matches!(self.replacement, Replacement::None)
            && !matches!(self.operation, Operation::Record);
        waits.then(|| overrides.loaded())
    }

    /// Calls `send` when the overrides are loaded. Nothing is charged if the future is dropped before.
    #[cold]
    pub(super) fn send_after<T: Unpin + Send + 'static>(
        &self,
        loading: StoreFuture<()>,
        send: fn(&CheckBuilder<'_>) -> StoreFuture<T, Error>,
    ) -> StoreFuture<T, Error> {
        let (limiter, subject) = (self.limiter.clone(), OwnedSubject::from(&self.subject));
        let Self {
            operation, cost, ..
        } = *self;
        StoreFuture::pending(async move {
            loading.await?;
            let check = CheckBuilder::new(&limiter, subject.as_subject(), operation).cost(cost);
            let answer = send(&check);
            answer.await
        })
    }

    /// Returns the quotas of this call. `first` stores the first quota if it has another amount.
    #[inline]
    pub(super) fn effective_quotas<'q>(
        &self,
        overrides: Option<&dyn OverrideStore>,
        now: Timestamp,
        first: &'q mut Option<Quota>,
    ) -> Result<EffectiveQuotas<'q>, ValidationError>
    where
        'a: 'q,
    {
        let counters = self.limiter.counters();
        match self.replacement {
            Replacement::None => {
                let limiter = self.limiter;
                Ok(limiter.effective_quotas(overrides, &self.subject, now))
            }
            Replacement::Amount(amount) => EffectiveQuotas::amount(counters, amount, first),
            Replacement::Quotas(quotas) => EffectiveQuotas::each(counters, quotas),
        }
    }

    /// Sends the check to the store, under these quotas.
    #[inline]
    pub(super) fn send_under(
        &self,
        quotas: &EffectiveQuotas<'_>,
        now: Timestamp,
    ) -> StoreFuture<Decision, Error> {
        let Self {
            operation, cost, ..
        } = *self;
        let answer =
            self.limiter.with_batch(
                &self.subject,
                quotas,
                cost,
                |store, batch| match operation {
                    Operation::Check => store.decide(batch, now),
                    Operation::Peek => store.peek(batch, now),
                    Operation::Record => store.record(batch, now),
                },
            );
        let conclusion = Conclusion {
            operation,
            cost,
            wall_offset: self.limiter.shared.wall_offset(),
        };
        let counters = self.limiter.counters();
        // Usages are large: read where they are if the store has answered.
        if let Some(Ok(usages)) = answer.as_ready() {
            let usages = &*quotas.block_ends().apply(usages, conclusion.wall_offset);
            let window = |index: usize| quotas.quota(index, &counters[index]).window_micros();
            return StoreFuture::ready(conclusion.decision(usages, counters.len(), window));
        }
        let windows = quotas.of(counters).map(|(_, quota)| quota.window_micros());
        let windows: SmallVec<[u64; MAX_CHECKS]> = windows.collect();
        let block_ends = quotas.block_ends().clone();
        answer.map(move |usages| {
            let usages = usages?;
            let usages = &*block_ends.apply(&usages, conclusion.wall_offset);
            conclusion.decision(usages, windows.len(), |index| windows[index])
        })
    }

    pub(super) const fn limiter(&self) -> &'a Limiter {
        self.limiter
    }

    pub(super) const fn subject(&self) -> &Subject<'a> {
        &self.subject
    }
}

/// What a decision depends on besides the usages.
#[derive(Clone, Copy)]
struct Conclusion {
    operation: Operation,
    cost: u64,
    wall_offset: i64,
}

impl Conclusion {
    /// Returns the decision that follows from usages of `len` quotas, of which each has a window.
    #[inline]
    fn decision(
        self,
        usages: &Usages,
        len: usize,
        window: impl Fn(usize) -> u64,
    ) -> Result<Decision, Error> {
        store::expect_len(usages, len)?;
        let order = |index| (0, u64::MAX - window(index));
        let decision = Decision::new(usages.at(), usages.live(), order);
        let charged = match self.operation {
            Operation::Check if decision.is_allowed() => self.cost,
            Operation::Check | Operation::Peek => 0,
            Operation::Record => self.cost,
        };
        Ok(decision.with_charged(charged).on_wall(self.wall_offset))
    }
}

/// Repeats `send` as long as `wait` returns a duration and there is time for it.
pub(super) async fn repeat_until_ready<T: Unpin>(
    clock: &dyn Clock,
    within: Duration,
    send: impl Fn() -> StoreFuture<T, Error>,
    wait: impl Fn(&T) -> Option<Duration>,
) -> Result<T, Error> {
    let deadline = clock::now(clock).saturating_add(within);
    loop {
        let answer = send().await?;
        let Some(wait) = wait(&answer) else {
            return Ok(answer);
        };
        let ready_at = clock::now(clock).saturating_add(wait);
        if ready_at > deadline {
            return Ok(answer);
        }
        clock.sleep_until(ready_at).await;
    }
}

impl IntoFuture for CheckBuilder<'_> {
    type Output = Result<Decision, Error>;
    type IntoFuture = StoreFuture<Decision, Error>;

    /// Sends the check to the store.
    fn into_future(self) -> Self::IntoFuture {
        self.send()
    }
}
