//! The engine without HTTP: quotas, a store and a clock behind one cheap handle.

mod builder;
mod check;
mod effective_quotas;
mod overrides;
mod reserve;

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::batch::{Batch, Check, MAX_CHECKS};
use crate::clock::{self, Clock, Timestamp};
use crate::decision::Decision;
use crate::error::{Error, ValidationError};
use crate::key::{Counter, Subject};
use crate::quota::IntoQuota;
use crate::store::{Store, StoreAdmin, StoreFuture, TimeSource, no_admin};
use crate::usage::Usages;

pub use self::builder::LimiterBuilder;
pub use self::check::CheckBuilder;
use self::check::Verb;
use self::effective_quotas::EffectiveQuotas;
pub use self::reserve::{Reservation, Reserve};

/// One rule, counted per key: what to use where there is no HTTP request to look at.
///
/// ```
/// use tollgate::Limiter;
///
/// let mails = Limiter::new("20/hour")?;
/// if mails.check("alice").wait()?.is_allowed() {
///     // send it
/// }
/// # Ok::<(), tollgate::Error>(())
/// ```
///
/// Clones share the same counters. Nothing needs a runtime: `.wait()` where there is none,
/// `.await` where there is one.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Limiter, Quota, Window};
///
/// # async fn send() -> Result<(), tollgate::Error> {
/// let outbound = Limiter::builder()
///     .name("outbound")
///     .quota(Quota::builder(60, Window::MINUTE).algorithm(Algorithm::SlidingBuckets).build()?)
///     .quota("1000/hour")
///     .build()?;
///
/// // Wait for a turn, for up to five seconds.
/// let turn = outbound.check("all").until_ready(Duration::from_secs(5)).await?;
/// if turn.is_denied() {
///     println!("too busy, come back in {:?}", turn.retry_after());
/// }
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(send()).unwrap();
/// ```
#[derive(Clone)]
pub struct Limiter {
    inner: Arc<Inner>,
}

struct Inner {
    counters: Box<[Counter]>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Clock of the store's instants.
    time: TimeSource,
}

impl Inner {
    /// Returns the microseconds to add to the store's instants to get wall-clock time.
    #[inline]
    fn wall_offset(&self) -> i64 {
        self.time.wall_offset(&*self.clock)
    }
}

impl Limiter {
    /// A limiter with one quota, counting in memory.
    pub fn new(quota: impl IntoQuota) -> Result<Self, ValidationError> {
        Self::builder().quota(quota).build()
    }

    /// A limiter with settings.
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder::default()
    }

    /// Charges `key` if every quota has room.
    ///
    /// Nothing happens before the [`CheckBuilder`] is awaited or waited for.
    #[inline]
    pub fn check<'a>(&'a self, key: impl Into<Subject<'a>>) -> CheckBuilder<'a> {
        CheckBuilder::new(self, key.into(), Verb::Check)
    }

    /// Returns what [`check`](Limiter::check) would return. Charges nothing.
    ///
    /// ```
    /// # use tollgate::Limiter;
    /// let limiter = Limiter::new("3/hour")?;
    /// limiter.check("alice").wait()?;
    /// let stand = limiter.peek("alice").wait()?;
    /// assert_eq!((stand.used(), stand.remaining()), (1, 2));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    #[inline]
    pub fn peek<'a>(&'a self, key: impl Into<Subject<'a>>) -> CheckBuilder<'a> {
        CheckBuilder::new(self, key.into(), Verb::Peek)
    }

    /// Charges what has already happened, whether there was room or not.
    ///
    /// ```
    /// # use tollgate::Limiter;
    /// let tokens = Limiter::new("1000/hour")?;
    /// if tokens.peek("alice").wait()?.is_allowed() {
    ///     let answer_took = 1_200; // known only afterwards
    ///     tokens.record("alice").cost(answer_took).wait()?;
    /// }
    /// assert!(tokens.peek("alice").wait()?.is_denied());
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    #[inline]
    pub fn record<'a>(&'a self, key: impl Into<Subject<'a>>) -> CheckBuilder<'a> {
        CheckBuilder::new(self, key.into(), Verb::Record)
    }

    /// How much `key` has left, in the quota that has the least.
    pub fn remaining<'a>(&self, key: impl Into<Subject<'a>>) -> StoreFuture<u64, Error> {
        let peek = CheckBuilder::new(self, key.into(), Verb::Peek).cost(0);
        peek.send()
            .map(|decision| decision.map(|decision| decision.remaining()))
    }

    /// How every quota of `key` stands, in the order of [`counters`](Limiter::counters).
    ///
    /// ```
    /// # use tollgate::Limiter;
    /// let limiter = Limiter::builder().quota("10/minute").quota("100/hour").build()?;
    /// limiter.check("alice").wait()?;
    /// let left: Vec<u64> =
    ///     limiter.usages("alice").wait()?.usages().iter().map(|usage| usage.remaining()).collect();
    /// assert_eq!(left, [9, 99]);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn usages<'a>(&self, key: impl Into<Subject<'a>>) -> StoreFuture<Usages, Error> {
        let (subject, now) = (key.into(), self.now());
        let quotas = self.effective_quotas(&subject, now);
        let offset = self.inner.wall_offset();
        let answer = self.with_batch(&subject, &quotas, 0, |store, batch| store.peek(batch, now));
        answer.map(move |usages| Ok(usages?.offset_by(offset)))
    }

    /// Takes back what `decision` has [`charged`](Decision::charged) `key`, as far as it still
    /// counts. Once: a decision that is cloned and given back twice takes back what others
    /// were charged.
    ///
    /// By the quotas that apply to `key` now. What was charged under others, said
    /// [for one call](CheckBuilder::quotas), is given back exactly by a [reservation](Self::reserve), which
    /// also cannot be forgotten.
    ///
    /// ```
    /// # use tollgate::Limiter;
    /// let sends = Limiter::new("3/hour")?;
    /// let decision = sends.check("alice").wait()?;
    /// let sent = false;
    /// if !sent {
    ///     sends.refund("alice", decision).wait()?;
    /// }
    /// assert_eq!(sends.remaining("alice").wait()?, 3);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    #[expect(
        clippy::needless_pass_by_value,
        reason = "so that it is not given back twice"
    )]
    pub fn refund<'a>(
        &self,
        key: impl Into<Subject<'a>>,
        decision: Decision,
    ) -> StoreFuture<(), Error> {
        let subject = key.into();
        let quotas = self.effective_quotas(&subject, self.now());
        let charged_at = decision.charged_at();
        self.refund_under(&subject, &quotas, decision.charged(), charged_at)
    }

    /// Forgets what this limiter has counted for `key`.
    pub fn reset<'a>(&self, key: impl Into<Subject<'a>>) -> StoreFuture<(), Error> {
        let subject = key.into();
        let answer = self.with_batch(&subject, &EffectiveQuotas::OWN, 0, |store, batch| {
            let no_admin = || StoreFuture::ready(Err(no_admin()));
            store
                .admin()
                .map_or_else(no_admin, |admin| admin.reset(batch))
        });
        answer.map(|done| done.map_err(Error::from))
    }

    /// Forgets everything in the store, also what other limiters have counted there.
    pub fn clear(&self) -> StoreFuture<(), Error> {
        self.with_admin(|admin| admin.clear())
    }

    /// How many counters the store keeps, also for other limiters, and also those that have
    /// expired but not been swept.
    pub fn len(&self) -> StoreFuture<usize, Error> {
        self.with_admin(|admin| admin.len())
    }

    /// Removes every expired counter and returns how many there were. Not needed for the
    /// memory store, which sweeps as it goes.
    pub fn sweep(&self) -> StoreFuture<usize, Error> {
        let now = self.now();
        self.with_admin(|admin| admin.sweep(now))
    }

    /// What is counted, in the order in which it was given.
    #[must_use]
    pub fn counters(&self) -> &[Counter] {
        &self.inner.counters
    }

    fn with_admin<T: Unpin + Send + 'static>(
        &self,
        call: impl FnOnce(&dyn StoreAdmin) -> StoreFuture<T>,
    ) -> StoreFuture<T, Error> {
        match self.inner.store.admin() {
            Some(admin) => call(admin).map(|done| done.map_err(Error::from)),
            None => StoreFuture::ready(Err(no_admin().into())),
        }
    }

    #[inline]
    fn now(&self) -> Timestamp {
        clock::now(&*self.inner.clock)
    }

    /// Calls `call` with a check for each counter of a subject.
    #[inline]
    fn with_batch<T>(
        &self,
        subject: &Subject<'_>,
        quotas: &EffectiveQuotas<'_>,
        cost: u64,
        call: impl FnOnce(&dyn Store, &Batch<'_>) -> StoreFuture<T>,
    ) -> StoreFuture<T> {
        let mut checks = SmallVec::<[Check<'_>; MAX_CHECKS]>::new();
        // Pushed, because `collect` takes 80 instructions for one check.
        for (counter, quota) in quotas.of(self.counters()) {
            let check = Check::new(subject, counter).with_quota(quota);
            checks.push(check.with_cost(cost));
        }
        call(&*self.inner.store, &Batch::from_plan(&checks))
    }

    /// Takes back a charge that was made at `charged_at` under these quotas.
    fn refund_under(
        &self,
        subject: &Subject<'_>,
        quotas: &EffectiveQuotas<'_>,
        cost: u64,
        charged_at: Timestamp,
    ) -> StoreFuture<(), Error> {
        if cost == 0 {
            return StoreFuture::ready(Ok(()));
        }
        let now = self.now();
        let answer = self.with_batch(subject, quotas, cost, |store, batch| {
            store.refund(batch, charged_at, now)
        });
        answer.map(|done| done.map_err(Error::from))
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("counters", &self.inner.counters)
            .field("store", &self.inner.store)
            .finish_non_exhaustive()
    }
}
