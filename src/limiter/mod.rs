//! The engine without HTTP: quotas, a store and a clock behind one cheap handle.

mod ask;
mod builder;
mod in_force;
mod overrides;
mod reserve;

use std::fmt;
use std::sync::Arc;

use crate::batch::{Batch, Check, MAX_CHECKS};
use crate::clock::SharedClock;
use crate::decision::Decision;
use crate::error::{Error, Invalid};
use crate::key::{Counter, Subject};
use crate::quota::IntoQuota;
use crate::store::{Store, StoreAdmin, StoreFuture, TimeSource, no_admin};
use crate::usage::Usages;

pub use self::ask::Ask;
use self::ask::Verb;
pub use self::builder::LimiterBuilder;
use self::in_force::InForce;
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
    clock: SharedClock,
    /// Clock of the store's instants.
    time: TimeSource,
}

impl Inner {
    /// Returns the microseconds to add to the store's instants to get wall-clock time.
    #[inline]
    fn wall_offset(&self) -> i64 {
        self.time.wall_offset(&self.clock)
    }
}

impl Limiter {
    /// A limiter with one quota, counting in memory.
    pub fn new(quota: impl IntoQuota) -> Result<Self, Invalid> {
        Self::builder().quota(quota).build()
    }

    /// A limiter with settings.
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder::default()
    }

    /// Asks whether `key` may go on, and charges it if so.
    ///
    /// Nothing happens before the [`Ask`] is awaited or waited for.
    #[inline]
    pub fn check<'a>(&'a self, key: impl Into<Subject<'a>>) -> Ask<'a> {
        Ask::new(self, key.into(), Verb::Check)
    }

    /// Asks what [`check`](Limiter::check) would say, and how things stand. Charges nothing.
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
    pub fn peek<'a>(&'a self, key: impl Into<Subject<'a>>) -> Ask<'a> {
        Ask::new(self, key.into(), Verb::Peek)
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
    pub fn record<'a>(&'a self, key: impl Into<Subject<'a>>) -> Ask<'a> {
        Ask::new(self, key.into(), Verb::Record)
    }

    /// How much `key` has left, in the quota that has the least.
    pub fn remaining<'a>(&self, key: impl Into<Subject<'a>>) -> StoreFuture<u64, Error> {
        let peek = Ask::new(self, key.into(), Verb::Peek).cost(0);
        peek.ask()
            .map(|decision| decision.map(|decision| decision.remaining()))
    }

    /// How every quota of `key` stands, in the order of [`counters`](Limiter::counters).
    ///
    /// ```
    /// # use tollgate::Limiter;
    /// let limiter = Limiter::builder().quota("10/minute").quota("100/hour").build()?;
    /// limiter.check("alice").wait()?;
    /// let left: Vec<u64> =
    ///     limiter.standing("alice").wait()?.usages().iter().map(|usage| usage.remaining()).collect();
    /// assert_eq!(left, [9, 99]);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn standing<'a>(&self, key: impl Into<Subject<'a>>) -> StoreFuture<Usages, Error> {
        let (subject, now) = (key.into(), self.inner.clock.now());
        let in_force = self.in_force(&subject, now);
        let offset = self.inner.wall_offset();
        let verdict = self.with_batch(&subject, &in_force, 0, |store, batch| {
            store.peek(batch, now)
        });
        verdict.map(move |verdict| Ok(verdict?.offset_by(offset)))
    }

    /// Takes back what `decision` has [`charged`](Decision::charged) `key`, as far as it still
    /// counts. Once: a decision that is cloned and given back twice takes back what others
    /// were charged.
    ///
    /// By the quotas that apply to `key` now. What was charged under others, said
    /// [for one call](Ask::quotas), is given back exactly by a [reservation](Self::reserve), which
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
        let in_force = self.in_force(&subject, self.inner.clock.now());
        self.give_back_under(
            &subject,
            &in_force,
            decision.charged(),
            decision.charged_at(),
        )
    }

    /// Forgets what this limiter has counted for `key`.
    pub fn reset<'a>(&self, key: impl Into<Subject<'a>>) -> StoreFuture<(), Error> {
        self.with_batch(&key.into(), &InForce::Own, 0, |store, batch| {
            let no_admin = || StoreFuture::ready(Err(no_admin()));
            store
                .admin()
                .map_or_else(no_admin, |admin| admin.reset(batch))
        })
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

    /// Drops every expired counter now, and says how many there were. Not needed for the
    /// memory store, which sweeps as it goes.
    pub fn sweep(&self) -> StoreFuture<usize, Error> {
        let now = self.inner.clock.now();
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

    fn with_batch<T: Unpin + Send + 'static>(
        &self,
        subject: &Subject<'_>,
        in_force: &InForce<'_>,
        cost: u64,
        call: impl FnOnce(&dyn Store, &Batch<'_>) -> StoreFuture<T>,
    ) -> StoreFuture<T, Error> {
        let mut checks = self.checks(subject, cost);
        let checks = &mut checks[..self.counters().len()];
        in_force.apply(checks);
        match Batch::new(checks) {
            Ok(batch) => call(&*self.inner.store, &batch).map(|answer| answer.map_err(Error::from)),
            Err(invalid) => StoreFuture::ready(Err(invalid.into())),
        }
    }

    /// A check for each counter; what is over is filled up with the first.
    fn checks<'b>(&'b self, subject: &'b Subject<'b>, cost: u64) -> [Check<'b>; MAX_CHECKS] {
        let counters = self.counters();
        // No limiter is built without a counter.
        let counter = |index| counters.get(index).unwrap_or(&counters[0]);
        std::array::from_fn(|index| Check::new(subject, counter(index)).with_cost(cost))
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
