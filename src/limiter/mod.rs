//! Limiter without HTTP: [`Limiter`].

mod builder;
mod check;
mod effective_quotas;
mod overrides;
mod reserve;
mod sweep;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::batch::{Batch, Check, MAX_CHECKS};
use crate::clock::{self, Clock, Timestamp};
use crate::decision::Decision;
use crate::error::{Error, ValidationError, ValidationErrors};
use crate::key::{Counter, Subject};
use crate::quota::IntoQuota;
use crate::store::{Store, StoreAdmin, StoreFuture, TimeSource, no_admin, shutdown_within};
use crate::usage::Usages;

pub use self::builder::LimiterBuilder;
pub use self::check::CheckBuilder;
use self::check::Operation;
use self::effective_quotas::EffectiveQuotas;
pub use self::reserve::{Reservation, Reserve};

/// One rule, counted per key, for work that is not an HTTP request.
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
/// Clones share the counters. A runtime is not needed: use `.await` in a task, and `.wait()` elsewhere.
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
/// // Wait for the quota, for up to five seconds.
/// let decision = outbound.check("all").until_ready(Duration::from_secs(5)).await?;
/// if decision.is_denied() {
///     println!("rate limited, retry in {:?}", decision.retry_after());
/// }
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(send()).unwrap();
/// ```
#[derive(Clone)]
pub struct Limiter {
    shared: Arc<LimiterShared>,
}

struct LimiterShared {
    counters: Box<[Counter]>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Clock of the store's instants.
    time: TimeSource,
}

impl LimiterShared {
    /// Returns the microseconds to add to the store's instants to get wall-clock time.
    #[inline]
    fn wall_offset(&self) -> i64 {
        self.time.wall_offset(&*self.clock)
    }
}

impl Limiter {
    /// Returns a limiter with one quota that counts in memory.
    pub fn new(quota: impl IntoQuota) -> Result<Self, ValidationError> {
        let limiter = Self::builder().quota(quota).build();
        limiter.map_err(ValidationErrors::into_first)
    }

    /// Returns a builder.
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder::default()
    }

    /// Charges `key` if every quota has room.
    ///
    /// Nothing is charged before the [`CheckBuilder`] is awaited or waited for.
    #[inline]
    pub fn check<'a>(&'a self, key: impl Into<Subject<'a>>) -> CheckBuilder<'a> {
        CheckBuilder::new(self, key.into(), Operation::Check)
    }

    /// Returns what [`check`](Limiter::check) would return. Charges nothing.
    ///
    /// ```
    /// # use tollgate::Limiter;
    /// let limiter = Limiter::new("3/hour")?;
    /// limiter.check("alice").wait()?;
    /// let peeked = limiter.peek("alice").wait()?;
    /// assert_eq!((peeked.used(), peeked.remaining()), (1, 2));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    #[inline]
    pub fn peek<'a>(&'a self, key: impl Into<Subject<'a>>) -> CheckBuilder<'a> {
        CheckBuilder::new(self, key.into(), Operation::Peek)
    }

    /// Charges what has already happened, whether there was room or not.
    ///
    /// ```
    /// # use tollgate::Limiter;
    /// let tokens = Limiter::new("1000/hour")?;
    /// if tokens.peek("alice").wait()?.is_allowed() {
    ///     let tokens_used = 1_200; // known only afterwards
    ///     tokens.record("alice").cost(tokens_used).wait()?;
    /// }
    /// assert!(tokens.peek("alice").wait()?.is_denied());
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    #[inline]
    pub fn record<'a>(&'a self, key: impl Into<Subject<'a>>) -> CheckBuilder<'a> {
        CheckBuilder::new(self, key.into(), Operation::Record)
    }

    /// Returns what `key` has left, in the quota with the least.
    pub fn remaining<'a>(&self, key: impl Into<Subject<'a>>) -> StoreFuture<u64, Error> {
        let peek = CheckBuilder::new(self, key.into(), Operation::Peek).cost(0);
        peek.send()
            .map(|decision| decision.map(|decision| decision.remaining()))
    }

    /// Returns the usage of each quota of `key`, in the order of [`counters`](Limiter::counters).
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
        let quotas = self.effective_quotas(self.override_store(), &subject, now);
        let offset = self.shared.wall_offset();
        let answer = self.with_batch(&subject, &quotas, 0, |store, batch| store.peek(batch, now));
        let block_ends = quotas.block_ends().clone();
        answer.map(move |usages| Ok(block_ends.apply(&usages?, offset).offset_by(offset)))
    }

    /// Refunds what `decision` has [`charged`](Decision::charged) `key`, as far as it still counts. Refund
    /// a decision once: a clone that is refunded too takes back other charges.
    ///
    /// Uses the quotas that apply to `key` now. A charge under quotas that were set
    /// [for one call](CheckBuilder::quotas) is refunded exactly by a [reservation](Self::reserve).
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
    #[expect(clippy::needless_pass_by_value, reason = "a decision is refunded once")]
    pub fn refund<'a>(
        &self,
        key: impl Into<Subject<'a>>,
        decision: Decision,
    ) -> StoreFuture<(), Error> {
        let subject = key.into();
        let quotas = self.effective_quotas(self.override_store(), &subject, self.now());
        let charged_at = decision.charged_at();
        self.refund_under(&subject, &quotas, decision.charged(), charged_at)
    }

    /// Removes the counters of this limiter for `key`.
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

    /// Removes all counters of the store, also those of other limiters.
    pub fn clear(&self) -> StoreFuture<(), Error> {
        self.with_admin(|admin| admin.clear())
    }

    /// Returns the number of counters in the store, including those of other limiters and expired ones
    /// that have not been swept.
    pub fn len(&self) -> StoreFuture<usize, Error> {
        self.with_admin(|admin| admin.len())
    }

    /// Removes every expired counter and returns how many there were. Not needed for the memory store,
    /// which sweeps with each request. At an interval: [`sweep_every`](Self::sweep_every).
    pub fn sweep(&self) -> StoreFuture<usize, Error> {
        let now = self.now();
        self.with_admin(|admin| admin.sweep(now))
    }

    /// Prepares the end of the process: refunds what the store has charged in advance
    /// ([`Leased`](crate::store::Leased)), and waits for the replies to refunds that were sent. Takes
    /// `deadline` at most. The limiter can still be used.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Limiter;
    ///
    /// let limiter = Limiter::new("10/minute")?;
    /// // … until SIGTERM, and until the last job is done.
    /// limiter.shutdown(Duration::from_secs(1)).wait()?;
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A refund of what the store has charged in advance failed, or the deadline has expired. What is
    /// not refunded stays charged until its window ends. Errors of refunds that were sent before are not
    /// returned.
    pub fn shutdown(&self, deadline: Duration) -> StoreFuture<(), Error> {
        shutdown_within(&*self.shared.store, &self.shared.clock, deadline)
    }

    /// Returns the counters, in the order of the quotas.
    #[must_use]
    pub fn counters(&self) -> &[Counter] {
        &self.shared.counters
    }

    fn with_admin<T: Unpin + Send + 'static>(
        &self,
        call: impl FnOnce(&dyn StoreAdmin) -> StoreFuture<T>,
    ) -> StoreFuture<T, Error> {
        match self.shared.store.admin() {
            Some(admin) => call(admin).map(|done| done.map_err(Error::from)),
            None => StoreFuture::ready(Err(no_admin().into())),
        }
    }

    #[inline]
    fn now(&self) -> Timestamp {
        clock::now(&*self.shared.clock)
    }

    /// Returns the time on the wall clock.
    #[cfg(feature = "axum")]
    pub(crate) fn wall_now(&self) -> Timestamp {
        clock::wall_now(&*self.shared.clock)
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
        let check = |(counter, quota)| {
            Check::new(subject, counter)
                .with_quota(quota)
                .with_cost(cost)
        };
        // `collect` takes 110 instructions more.
        let mut all: SmallVec<[Check<'_>; MAX_CHECKS]> = SmallVec::new();
        for quota in quotas.of(self.counters()) {
            all.push(check(quota));
        }
        call(&*self.shared.store, &Batch::from_plan(&all))
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
            .field("counters", &self.shared.counters)
            .field("store", &self.shared.store)
            .finish_non_exhaustive()
    }
}
