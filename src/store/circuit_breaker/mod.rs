//! [`CircuitBreaker`]: decorator with a deadline and a circuit breaker.

mod breaker;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

pub(super) use self::breaker::AdmittedCall;
use self::breaker::Breaker;
use super::hook::{CompletionHook, StoreReply};
use super::{Store, StoreFuture, StoreHealth};
use crate::batch::Batch;
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::error::{ValidationError, ValidationErrors};
use crate::usage::Usages;

/// Decorator that puts a deadline and a circuit breaker around a store.
///
/// ```
/// use std::time::Duration;
/// use tollgate::store::CircuitBreaker;
/// use tollgate::{Limiter, MemoryStore};
///
/// # type CustomStore = MemoryStore;
/// let store = CircuitBreaker::builder(CustomStore::new())
///     .deadline(Duration::from_millis(20))
///     .build()?;
/// let limiter = Limiter::builder().quota("100/minute").store(store).build()?;
/// assert!(limiter.check("alice").wait()?.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// - **Deadline.** A call without a reply after 50 ms fails. It is not repeated, because the store
///   may have charged it.
/// - **Abandoned calls.** A pending call that its caller drops after half of the deadline is a failure,
///   unless the store has answered another call meanwhile. Otherwise callers with less patience than
///   the deadline would keep a hanging store in use.
/// - **Circuit breaker.** After three consecutive failures, calls fail without reaching the store.
///   One half-open probe goes through every 250 to 500 ms, at random. Its success closes the
///   breaker. Calls are not queued meanwhile.
/// - **Health.** [`Store::health`] returns since when the store has failed, and the last error.
///
/// # Effect on requests
///
/// Calls return a [`StoreError`](crate::StoreError). The rules of the policy decide what happens to the request
/// ([`OnStoreFailure`](crate::policy::OnStoreFailure)). Default: requests are counted in the memory
/// of each process, with [a share](crate::policy::PolicyBuilder::local_share) of the limits. A
/// permanent error ([`StoreErrorKind::Permanent`](crate::StoreErrorKind::Permanent)), such as a wrong
/// password, never lets a request pass uncounted.
///
/// Deadline and breaker apply to `decide`, `peek`, `record` and `refund`. The operations of
/// [`admin`](Store::admin) and [`overrides`](Store::overrides) reach the store in every state.
///
/// Without a deadline, a call adds no allocation: the breaker runs as a completion hook of the
/// store's future. The deadline adds one boxed future and a timer to a call that is pending.
pub struct CircuitBreaker {
    store: Arc<dyn Store>,
    breaker: Arc<Breaker>,
    /// `None` if the store enforces one.
    deadline: Option<Duration>,
}

impl CircuitBreaker {
    /// Creates a decorator with the default settings.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self::builder(store).create()
    }

    /// Returns a builder with the default settings.
    pub fn builder(store: impl Store) -> CircuitBreakerBuilder {
        CircuitBreakerBuilder {
            store: Arc::new(store),
            clock: Arc::new(SystemClock::new()),
            deadline: Some(Duration::from_millis(50)),
            failure_threshold: 3,
            probe_interval: Duration::from_millis(500),
        }
    }

    /// Calls the store if the breaker admits it, and reports the result to the breaker.
    #[inline]
    fn call<T: StoreReply + Unpin + Send + 'static>(
        &self,
        call: impl FnOnce(&dyn Store) -> StoreFuture<T>,
    ) -> StoreFuture<T> {
        let mut admitted = match self.breaker.admit() {
            Ok(admitted) => admitted,
            Err(open) => return StoreFuture::ready(Err(open)),
        };
        let pending = match call(&*self.store).try_ready() {
            Ok(result) => {
                admitted.report(&result);
                return StoreFuture::ready(result);
            }
            Err(pending) => pending,
        };
        let call = match self.deadline {
            Some(deadline) => {
                let now = self.breaker.clock().now();
                admitted.watch(now, deadline);
                self.with_deadline(pending, now, deadline)
            }
            None => pending,
        };
        call.with_hook(CompletionHook::CircuitBreaker(admitted))
    }

    fn with_deadline<T: Unpin + Send + 'static>(
        &self,
        call: StoreFuture<T>,
        now: Timestamp,
        deadline: Duration,
    ) -> StoreFuture<T> {
        let expired = self
            .breaker
            .clock()
            .sleep_until(now.saturating_add(deadline));
        let breaker = Arc::clone(&self.breaker);
        StoreFuture::pending(async move {
            match select(call, expired).await {
                Either::Left((result, _)) => {
                    breaker.count_reply();
                    result
                }
                Either::Right(_) => Err(breaker::no_reply(deadline)),
            }
        })
    }
}

impl Store for CircuitBreaker {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.call(|store| store.decide(batch, now))
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.call(|store| store.peek(batch, now))
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.call(|store| store.record(batch, now))
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        self.call(|store| store.refund(batch, charged_at, now))
    }

    fn health(&self) -> StoreHealth {
        match self.breaker.health() {
            StoreHealth::Healthy => self.store.health(),
            degraded => degraded,
        }
    }

    #[inline]
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.store)
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

    /// Sets the time that a reply may take: up to 60 seconds. Default: 50 ms.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Removes the deadline. For a store that enforces one, such as `RedisStore`.
    pub fn without_deadline(mut self) -> Self {
        self.deadline = None;
        self
    }

    /// Sets the number of consecutive failures that open the breaker: at least 1. Default: 3.
    pub fn failure_threshold(mut self, failures: u32) -> Self {
        self.failure_threshold = failures;
        self
    }

    /// Sets the longest time between half-open probes: up to 60 seconds. Default: 500 ms. The
    /// actual time is between half of it and all of it, at random.
    pub fn probe_interval(mut self, interval: Duration) -> Self {
        self.probe_interval = interval;
        self
    }

    /// Sets the clock of deadline and breaker. Default: the system clock.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Validates the settings and creates the decorator.
    ///
    /// # Errors
    ///
    /// All wrong settings, each with its path: `deadline`, `probe_interval`, `failure_threshold`.
    pub fn build(self) -> Result<CircuitBreaker, ValidationErrors> {
        let mut errors = ValidationErrors::default();
        let is_wrong = |time: &Duration| time.is_zero() || *time > Self::LONGEST_DEADLINE;
        let times = [
            ("deadline", self.deadline),
            ("probe_interval", Some(self.probe_interval)),
        ];
        for (path, time) in times {
            if let Some(wrong) = time.filter(is_wrong) {
                let field = format!("circuit breaker {path}");
                let found = format!("{wrong:?}");
                errors.push(ValidationError::new(field, found, "up to 60 seconds").at(path));
            }
        }
        if self.failure_threshold == 0 {
            let field = "circuit breaker failure_threshold";
            let error = ValidationError::new(field, 0, "at least one failure");
            errors.push(error.at("failure_threshold"));
        }
        Ok(errors.or(self)?.create())
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
