//! Time as an argument: [`Timestamp`], [`Clock`], and the only `now()` of the crate.

mod counter;
mod manual;
mod system;
mod text;
mod ticks;
mod wall;

pub use self::manual::ManualClock;
pub use self::system::SystemClock;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An instant: whole microseconds since the Unix epoch.
///
/// All decisions use these integers, so that a memory store and a script that computes in doubles
/// (exact to 2^53) return equal results.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Timestamp;
///
/// let noon = Timestamp::from_secs(1_730_289_600);
/// let later = noon.saturating_add(Duration::from_millis(1500));
/// assert_eq!(later.duration_since(noon), Duration::from_millis(1500));
/// assert_eq!(noon.duration_since(later), Duration::ZERO);
/// assert_eq!(noon.to_string(), "2024-10-30T12:00:00.000Z");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);

    /// The last instant, in the year 2219. Later ones are replaced by it.
    ///
    /// Three of the longest windows after it are still below 2^53.
    pub const MAX: Self = Self((1 << 53) - (1 << 50));

    /// Returns the instant `micros` microseconds after the epoch, at most [`Timestamp::MAX`].
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        if micros > Self::MAX.0 {
            Self::MAX
        } else {
            Self(micros)
        }
    }

    /// Returns the instant `secs` seconds after the epoch, at most [`Timestamp::MAX`].
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self::from_micros(secs.saturating_mul(1_000_000))
    }

    /// Returns the microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the whole seconds since the epoch, rounded up, so that a client that waits until then does
    /// not wait too short.
    #[must_use]
    pub const fn as_secs_rounded_up(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// Returns this instant plus `duration`, at most [`Timestamp::MAX`]. Parts of a microsecond are
    /// rounded up.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        let micros = duration.as_nanos().div_ceil(1_000);
        Self::from_micros(
            self.0
                .saturating_add(u64::try_from(micros).unwrap_or(u64::MAX)),
        )
    }

    /// Returns the time since `earlier`; zero if `earlier` is not before this instant.
    #[must_use]
    pub const fn duration_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// Returns this instant moved by `micros` microseconds, which may be negative. The result is
    /// limited to the range from [`Timestamp::EPOCH`] to 2^53 microseconds.
    ///
    /// Converts between [`Clock::now`] and the wall clock; see [`Clock::wall_offset`].
    ///
    /// ```
    /// use tollgate::Timestamp;
    ///
    /// let noon = Timestamp::from_secs(1_730_289_600);
    /// assert_eq!(noon.offset_by(-1_000_000), Timestamp::from_secs(1_730_289_599));
    /// assert_eq!(Timestamp::EPOCH.offset_by(-1), Timestamp::EPOCH);
    /// ```
    #[inline]
    #[must_use]
    pub const fn offset_by(self, micros: i64) -> Self {
        Self::end(self.0.saturating_add_signed(micros))
    }

    /// Returns an instant from microseconds that came from a valid instant.
    #[inline]
    pub(crate) const fn again(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns an instant that was computed from a valid one: possibly after [`Timestamp::MAX`], below 2^53.
    #[inline]
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

/// Times before the epoch become the epoch, those after [`Timestamp::MAX`] become that.
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

/// Source of time: a monotonic time line, and its difference to the wall clock.
///
/// Rates and waits are measured on [`now`](Clock::now), so that a step of the wall clock neither
/// opens nor prolongs their windows. Instants that have a meaning outside of the process follow the
/// wall clock, which is `now()` plus [`wall_offset`](Clock::wall_offset): `exp` and `nbf` of tokens,
/// maintenance, the end of overrides, calendar windows, and every Unix time in a response.
///
/// A clock should not go back. If one does, no counter breaks: a counter that has seen a later
/// instant behaves as if no time had passed.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the present on the monotonic time line.
    fn now(&self) -> Timestamp;

    /// Returns the microseconds to add to [`now`](Clock::now) to get the time on the wall clock.
    ///
    /// Called at least once per request, after `now()`: it must be cheap. Default: 0, for clocks
    /// whose `now()` is the wall clock.
    fn wall_offset(&self) -> i64 {
        0
    }

    /// Completes once [`now`](Clock::now) is at or past `deadline`.
    fn sleep_until(&self, deadline: Timestamp) -> Sleep;
}

/// Shared clock.
impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn wall_offset(&self) -> i64 {
        (**self).wall_offset()
    }

    fn sleep_until(&self, deadline: Timestamp) -> Sleep {
        (**self).sleep_until(deadline)
    }
}

/// Returns the present of a clock, at most [`Timestamp::MAX`]: a clock of the user may be past it.
#[inline]
pub(crate) fn now(clock: &dyn Clock) -> Timestamp {
    clock.now().min(Timestamp::MAX)
}

/// Returns the wall-clock time at `now`, an instant of this clock. Read `now` first: reading it may
/// measure the offset again.
#[inline]
pub(crate) fn wall_at(clock: &dyn Clock, now: Timestamp) -> Timestamp {
    now.offset_by(clock.wall_offset())
}

/// Returns the time on the wall clock.
pub(crate) fn wall_now(clock: &dyn Clock) -> Timestamp {
    let now = now(clock);
    wall_at(clock, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_time_round_trips() {
        let timestamp = Timestamp::from_micros(1_735_689_600_123_456);
        assert_eq!(Timestamp::from(SystemTime::from(timestamp)), timestamp);
        let before = UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(Timestamp::from(before), Timestamp::EPOCH);
        assert_eq!(timestamp.to_string(), "2025-01-01T00:00:00.123Z");
        assert_eq!(Timestamp::MAX.to_string(), "2219-10-01T17:49:07.898Z");
    }
}
