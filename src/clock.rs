//! Time as an argument: [`Timestamp`], [`Clock`], and the only `now()` of the crate.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_timer::Delay;
use slab::Slab;

use crate::calendar;

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
/// assert_eq!(noon.to_string(), "2024-10-30T12:00:00.000000Z");
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

    /// The microseconds of an instant that was valid before.
    #[inline]
    pub(crate) const fn again(micros: u64) -> Self {
        Self(micros)
    }

    /// An end computed from a valid instant: may lie past [`Timestamp::MAX`], never past 2^53.
    #[inline]
    pub(crate) const fn end(micros: u64) -> Self {
        const LAST: u64 = (1 << 53) - 1;
        Self(if micros > LAST { LAST } else { micros })
    }
}

/// RFC 3339 in UTC, to the microsecond: `2025-10-30T14:00:00.000000Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = calendar::date(self.0 / calendar::DAY);
        let (seconds, micros) = (self.0 / 1_000_000 % 86_400, self.0 % 1_000_000);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z"
        )
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// Before the epoch is taken for the epoch, after [`Timestamp::MAX`] for that.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }
}

impl From<Timestamp> for SystemTime {
    fn from(timestamp: Timestamp) -> Self {
        UNIX_EPOCH + Duration::from_micros(timestamp.0)
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

/// A clock that is shared.
impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn sleep_until(&self, deadline: Timestamp) -> Sleep {
        (**self).sleep_until(deadline)
    }
}

/// The machine's clock: read from the wall once, monotonic from there on.
///
/// A step of the wall clock (NTP, an operator) after the start is not followed, so windows keep
/// their length. The other side of it: whoever starts before the machine knows the time stays
/// off by as much, and a machine that was suspended is behind by as long. That moves the ends
/// of calendar windows and the reset times that are told; waits stay right.
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
        Self {
            wall_micros: Timestamp::from(SystemTime::now()).as_micros(),
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
    /// Who sleeps, each under a key of its own, until when.
    sleepers: Mutex<Slab<(Timestamp, Waker)>>,
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
        self.change(|now| now.saturating_add(duration));
    }

    /// Sets the clock, also backwards.
    pub fn set(&self, now: Timestamp) {
        self.change(|_| now);
    }

    fn change(&self, change: impl FnOnce(Timestamp) -> Timestamp) {
        let due: Vec<Waker> = {
            // Under the lock, so that of two changes at once none is lost.
            let sleepers = self.sleepers();
            let now = change(self.now());
            self.shared.now.store(now.as_micros(), Ordering::SeqCst);
            let due = sleepers.iter().filter(|(_, (until, _))| *until <= now);
            due.map(|(_, (_, waker))| waker.clone()).collect()
        };
        due.into_iter().for_each(Waker::wake);
    }

    /// How many futures sleep on this clock. Tells a test that its task has come to rest.
    #[must_use]
    pub fn sleeping(&self) -> usize {
        let sleepers = self.sleepers();
        let now = self.now();
        sleepers
            .iter()
            .filter(|(_, (until, _))| *until > now)
            .count()
    }

    fn sleepers(&self) -> MutexGuard<'_, Slab<(Timestamp, Waker)>> {
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
            key: None,
        })
    }
}

struct ManualSleep {
    clock: ManualClock,
    deadline: Timestamp,
    /// Where it is registered, once it has been polled.
    key: Option<usize>,
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        // Under the lock, so that no change passes between the look and the registration.
        let mut sleepers = this.clock.sleepers();
        if this.clock.now() >= this.deadline {
            return Poll::Ready(());
        }
        let entry = (this.deadline, cx.waker().clone());
        match this.key.and_then(|key| sleepers.get_mut(key)) {
            Some(known) => *known = entry,
            None => this.key = Some(sleepers.insert(entry)),
        }
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.clock.sleepers().try_remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleepers_are_counted_one_by_one_and_leave_when_dropped() {
        let clock = ManualClock::new();
        let soon = clock.now().saturating_add(Duration::from_secs(1));
        let mut context = Context::from_waker(Waker::noop());
        let mut sleeps: Vec<Sleep> = (0..3).map(|_| clock.sleep_until(soon)).collect();
        assert_eq!(clock.sleeping(), 0);
        for sleep in &mut sleeps {
            for _ in 0..2 {
                assert!(sleep.as_mut().poll(&mut context).is_pending());
            }
        }
        assert_eq!(clock.sleeping(), 3);
        sleeps.pop();
        assert_eq!(clock.sleeping(), 2);
        clock.advance(Duration::from_secs(1));
        assert_eq!(clock.sleeping(), 0);
        assert!(sleeps[0].as_mut().poll(&mut context).is_ready());
        drop(sleeps);
        assert!(clock.sleepers().is_empty());
    }

    #[test]
    fn advances_from_several_threads_add_up() {
        let clock = ManualClock::new();
        let start = clock.now();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1_000).for_each(|_| clock.advance(Duration::from_micros(1))));
            }
        });
        assert_eq!(clock.now().duration_since(start), Duration::from_millis(4));
    }

    #[test]
    fn system_times_go_there_and_back() {
        let timestamp = Timestamp::from_micros(1_735_689_600_123_456);
        assert_eq!(Timestamp::from(SystemTime::from(timestamp)), timestamp);
        let before = UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(Timestamp::from(before), Timestamp::EPOCH);
        assert_eq!(timestamp.to_string(), "2025-01-01T00:00:00.123456Z");
        assert_eq!(Timestamp::MAX.to_string(), "2219-10-01T17:49:07.898368Z");
    }
}
