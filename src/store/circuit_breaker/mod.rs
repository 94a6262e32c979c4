//! A store that fails costs a deadline a few times, and then nothing.

mod breaker;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use self::breaker::Breaker;
use super::{OverrideStore, Store, StoreAdmin, StoreFuture, StoreHealth, TimeSource};
use crate::batch::Batch;
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::error::{Invalid, StoreError};
use crate::usage::Usages;

/// Puts a deadline and a circuit breaker around a store.
///
/// ```
/// use std::time::Duration;
/// use tollgate::store::CircuitBreaker;
/// use tollgate::{Limiter, MemoryStore};
///
/// # type StoreOfMyOwn = MemoryStore;
/// let store = CircuitBreaker::builder(StoreOfMyOwn::new())
///     .deadline(Duration::from_millis(20))
///     .build()?;
/// let limiter = Limiter::builder().quota("100/minute").store(store).build()?;
/// assert!(limiter.check("alice").wait()?.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// - **A deadline.** Who has no answer after 50 milliseconds gets an error. Whether it was
///   charged is not known, and so it is not asked again.
/// - **A breaker.** After three failures in a row the store is left alone: whoever asks is told so
///   at once. Twice a second or a little more often, by chance, one call goes through to find out
///   whether the store is back; when it is, it is asked again from that moment on. No call waits in
///   a queue meanwhile, so nothing stale arrives.
/// - **It is seen.** [`Store::health`] says since when the store has not answered, and why.
///
/// # What becomes of requests
///
/// This store says that it cannot answer. What follows from that, each rule has said itself, with
/// [`OnStoreFailure`](crate::policy::OnStoreFailure): by default requests are counted in the memory
/// of each process, at [a share](crate::policy::PolicyBuilder::local_share) of the limits. A mistake
/// that waiting does not mend ([`StoreErrorKind::Refused`](crate::StoreErrorKind::Refused)), such
/// as a wrong password, lets nobody through uncounted.
///
/// The deadline is for what requests wait for: decide, peek, record and give back. What operators
/// do (reset, clear, count, overrides) takes the store's own time, and is tried whatever the
/// breaker says.
pub struct CircuitBreaker {
    store: Arc<dyn Store>,
    breaker: Arc<Breaker>,
    /// `None` if the store keeps one.
    deadline: Option<Duration>,
}

impl CircuitBreaker {
    /// The usual deadline and breaker.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self::builder(store).create()
    }

    /// The same, with settings.
    pub fn builder(store: impl Store) -> CircuitBreakerBuilder {
        CircuitBreakerBuilder {
            store: Arc::new(store),
            clock: Arc::new(SystemClock::new()),
            deadline: Some(Duration::from_millis(50)),
            failure_threshold: 3,
            probe_interval: Duration::from_millis(500),
        }
    }

    /// Asks, if the store is asked at all, and notes what comes of it.
    #[inline]
    fn ask<T: Unpin + Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Store) -> StoreFuture<T>,
    ) -> StoreFuture<T> {
        let pass = match self.breaker.admit() {
            Ok(pass) => pass,
            Err(closed) => return StoreFuture::ready(Err(closed)),
        };
        match ask(&*self.store).try_ready() {
            Ok(result) => {
                pass.report(&result);
                StoreFuture::ready(result)
            }
            Err(pending) => {
                let too_late = self.too_late();
                StoreFuture::pending(async move {
                    let result = match too_late {
                        None => pending.await,
                        Some((deadline, too_late)) => match select(pending, too_late).await {
                            Either::Left((result, _)) => result,
                            Either::Right(_) => Err(StoreError::new(format!(
                                "the store has not answered within {deadline:?}"
                            ))),
                        },
                    };
                    pass.report(&result);
                    result
                })
            }
        }
    }

    /// The deadline, and what completes when it is over.
    fn too_late(&self) -> Option<(Duration, crate::clock::Sleep)> {
        let deadline = self.deadline?;
        let clock = self.breaker.clock();
        let end = clock.now().saturating_add(deadline);
        Some((deadline, clock.sleep_until(end)))
    }
}

impl Store for CircuitBreaker {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.ask(|store| store.decide(batch, now))
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.ask(|store| store.peek(batch, now))
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.ask(|store| store.record(batch, now))
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        self.ask(|store| store.refund(batch, charged_at, now))
    }

    fn health(&self) -> StoreHealth {
        match self.breaker.health() {
            StoreHealth::Healthy => self.store.health(),
            degraded => degraded,
        }
    }

    fn use_clock(&self, clock: &Arc<dyn Clock>) -> TimeSource {
        self.store.use_clock(clock)
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.store.admin()
    }

    #[inline]
    fn overrides(&self) -> Option<&dyn OverrideStore> {
        self.store.overrides()
    }
}

impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker")
            .field("store", &self.store)
            .field("breaker", &self.breaker)
            .field("deadline", &self.deadline)
            .finish()
    }
}

/// Settings of a [`CircuitBreaker`].
#[derive(Debug)]
#[must_use]
pub struct CircuitBreakerBuilder {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    deadline: Option<Duration>,
    failure_threshold: u32,
    probe_interval: Duration,
}

impl CircuitBreakerBuilder {
    const LONGEST_DEADLINE: Duration = Duration::from_mins(1);

    /// How long an answer may take; 50 milliseconds by default.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// For stores that keep a deadline themselves, as `RedisStore` does: one
    /// timer is enough.
    pub fn without_deadline(mut self) -> Self {
        self.deadline = None;
        self
    }

    /// After how many failures in a row the store is left alone; three by default.
    pub fn failure_threshold(mut self, failures: u32) -> Self {
        self.failure_threshold = failures;
        self
    }

    /// How often one call goes through to find out whether the store is back; every half a second
    /// by default, or up to twice as often, by chance.
    pub fn probe_interval(mut self, interval: Duration) -> Self {
        self.probe_interval = interval;
        self
    }

    /// The clock of deadline and breaker; the machine's, if not given.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Checks the settings and builds the store.
    pub fn build(self) -> Result<CircuitBreaker, Invalid> {
        let too_long =
            |deadline: &Duration| deadline.is_zero() || *deadline > Self::LONGEST_DEADLINE;
        if let Some(wrong) = self.deadline.filter(too_long) {
            let found = format!("{wrong:?}");
            return Err(Invalid::new("store deadline", found, "up to 60 seconds"));
        }
        if self.failure_threshold == 0 {
            let expected = "at least one failure: a breaker that is always open asks nobody";
            return Err(Invalid::new("breaker", self.failure_threshold, expected));
        }
        if self.probe_interval.is_zero() || self.probe_interval > Self::LONGEST_DEADLINE {
            let found = format!("{:?}", self.probe_interval);
            return Err(Invalid::new("probe interval", found, "up to 60 seconds"));
        }
        Ok(self.create())
    }

    fn create(self) -> CircuitBreaker {
        let breaker = Breaker::new(self.clock, self.failure_threshold, self.probe_interval);
        CircuitBreaker {
            store: self.store,
            breaker: Arc::new(breaker),
            deadline: self.deadline,
        }
    }
}
