//! Time as an argument: [`Timestamp`], [`Clock`], and the only `now()` of the crate.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_timer::Delay;

/// An instant: whole microseconds since the Unix epoch.
///
/// Every decision is made on these integers, so that the same trace gives the same answer in
/// memory and in a script that counts in doubles (exact to 2^53).
///
/// ```
/// use std::time::Duration;
/// use tollgate::Timestamp;
///
/// let noon = Timestamp::from_secs(1_730_289_600);
/// let later = noon.saturating_add(Duration::from_millis(1500));
/// assert_eq!(later.duration_since(noon), Duration::from_millis(1500));
/// assert_eq!(noon.duration_since(later), Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);

    /// The last instant that can be told apart, in the year 2219. Later ones are taken for it.
    ///
    /// It leaves room for three of the longest windows below 2^53.
    pub const MAX: Self = Self((1 << 53) - (1 << 50));

    /// The instant `micros` microseconds after the epoch, at most [`Timestamp::MAX`].
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        if micros > Self::MAX.0 {
            Self::MAX
        } else {
            Self(micros)
        }
    }

    /// The instant `secs` seconds after the epoch, at most [`Timestamp::MAX`].
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self::from_micros(secs.saturating_mul(1_000_000))
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded up: a client that waits until then has waited
    /// long enough.
    #[must_use]
    pub const fn as_secs_rounded_up(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// This instant and `duration`, at most [`Timestamp::MAX`]. Parts of a microsecond are
    /// rounded up.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        let micros = duration.as_nanos().div_ceil(1_000);
        Self::from_micros(
            self.0
                .saturating_add(u64::try_from(micros).unwrap_or(u64::MAX)),
        )
    }

    /// How long after `earlier` this is; nothing if it is not after it.
    #[must_use]
    pub const fn duration_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// An end computed from a valid instant: may lie past [`Timestamp::MAX`], never past 2^53.
    pub(crate) const fn end(micros: u64) -> Self {
        const LAST: u64 = (1 << 53) - 1;
        Self(if micros > LAST { LAST } else { micros })
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// The future that [`Clock::sleep_until`] returns.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where time comes from.
///
/// A clock should not go back. Where one does, nothing breaks: for a counter that has already
/// seen a later instant, no time has passed.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The present.
    fn now(&self) -> Timestamp;

    /// Completes once [`now`](Clock::now) is at or past `deadline`.
    fn sleep_until(&self, deadline: Timestamp) -> Sleep;
}

/// The machine's clock: read from the wall once, monotonic from there on.
///
/// A step of the wall clock (NTP, an operator) after the start is not followed; windows keep
/// their length.
///
/// ```
/// use tollgate::{Clock, SystemClock};
///
/// let clock = SystemClock::new();
/// assert!(clock.now() <= clock.now());
/// ```
#[derive(Clone, Debug)]
pub struct SystemClock {
    wall_micros: u64,
    started: Instant,
}

impl SystemClock {
    /// A clock aligned to the wall clock now.
    #[must_use]
    pub fn new() -> Self {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            wall_micros: u64::try_from(wall.as_micros()).unwrap_or(u64::MAX),
            started: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.started.elapsed();
        // By hand, because `as_micros` goes through 128 bits.
        let micros = elapsed
            .as_secs()
            .saturating_mul(1_000_000)
            .saturating_add(u64::from(elapsed.subsec_micros()));
        Timestamp::from_micros(self.wall_micros.saturating_add(micros))
    }

    fn sleep_until(&self, deadline: Timestamp) -> Sleep {
        let clock = self.clone();
        Box::pin(async move {
            // A timer may fire a little early; the promise is about the clock.
            loop {
                let left = deadline.duration_since(clock.now());
                if left.is_zero() {
                    return;
                }
                Delay::new(left).await;
            }
        })
    }
}

/// A clock that stands still until it is told to move. Clones share the same time.
///
/// Sleeping on it takes no real time: whoever sleeps wakes when the clock is moved far enough.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Clock, Limiter, ManualClock};
///
/// let clock = ManualClock::new();
/// let limiter = Limiter::builder().quota("1/minute").clock(clock.clone()).build()?;
/// assert!(limiter.check("alice").wait()?.is_allowed());
/// assert!(limiter.check("alice").wait()?.is_denied());
///
/// clock.advance(Duration::from_secs(120));
/// assert!(limiter.check("alice").wait()?.is_allowed());
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    shared: Arc<Manual>,
}

#[derive(Debug)]
struct Manual {
    now: AtomicU64,
    sleepers: Mutex<Vec<(Timestamp, Waker)>>,
}

impl ManualClock {
    /// A clock that shows 2025-01-01 00:00:00 UTC: the start of a second, an hour, a day and
    /// a month.
    #[must_use]
    pub fn new() -> Self {
        Self::at(Timestamp::from_secs(1_735_689_600))
    }

    /// A clock that shows `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self {
            shared: Arc::new(Manual {
                now: AtomicU64::new(now.as_micros()),
                sleepers: Mutex::default(),
            }),
        }
    }

    /// Moves the clock forward.
    pub fn advance(&self, duration: Duration) {
        self.set(self.now().saturating_add(duration));
    }

    /// Sets the clock, also backwards.
    pub fn set(&self, now: Timestamp) {
        self.shared.now.store(now.as_micros(), Ordering::SeqCst);
        let due: Vec<Waker> = {
            let mut sleepers = self.sleepers();
            let (due, still) = sleepers.drain(..).partition(|(until, _)| *until <= now);
            *sleepers = still;
            due.into_iter().map(|(_, waker)| waker).collect()
        };
        due.into_iter().for_each(Waker::wake);
    }

    /// How many futures sleep on this clock. Tells a test that its task has come to rest.
    #[must_use]
    pub fn sleeping(&self) -> usize {
        self.sleepers().len()
    }

    fn sleepers(&self) -> std::sync::MutexGuard<'_, Vec<(Timestamp, Waker)>> {
        self.shared
            .sleepers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.shared.now.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, deadline: Timestamp) -> Sleep {
        Box::pin(ManualSleep {
            clock: self.clone(),
            deadline,
        })
    }
}

struct ManualSleep {
    clock: ManualClock,
    deadline: Timestamp,
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Under the lock, so that `set` cannot pass between the look and the registration.
        let mut sleepers = self.clock.sleepers();
        if self.clock.now() >= self.deadline {
            return Poll::Ready(());
        }
        let known = sleepers
            .iter()
            .any(|(until, waker)| *until == self.deadline && waker.will_wake(cx.waker()));
        if !known {
            sleepers.push((self.deadline, cx.waker().clone()));
        }
        Poll::Pending
    }
}
