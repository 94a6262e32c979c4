//! Amount per window, and how it is counted: [`Quota`].

mod builder;
mod divisor;
mod into;
mod text;
mod window;

use std::fmt;
use std::time::Duration;

use crate::error::{ValidationError, ValidationErrors, named};

use self::divisor::Divisor;
pub(crate) use self::divisor::Rough;

pub use self::builder::QuotaBuilder;
pub use self::into::IntoQuota;
pub use self::window::Window;

/// How a quota counts. Bounds and costs are in [`crate::docs::algorithms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Algorithm {
    /// Two counters, of which the older one is weighted down linearly. The default.
    #[default]
    SlidingWindow,
    /// One counter per aligned window. Days and months are those of the calendar.
    FixedWindow,
    /// One counter per part of the window. Never admits more than the limit in any window; capacity
    /// becomes free up to one bucket late.
    SlidingBuckets,
    /// One timestamp per request. Exact; needs memory for each request.
    SlidingLog,
    /// A bucket that refills steadily (GCRA): bursts up to its capacity, then a constant rate.
    TokenBucket,
}

impl Algorithm {
    /// Returns whether `reset` is the instant at which nothing is used any more, and not the end of a
    /// window.
    pub(crate) const fn is_whole_again(self) -> bool {
        match self {
            Self::SlidingBuckets | Self::SlidingLog | Self::TokenBucket => true,
            Self::SlidingWindow | Self::FixedWindow => false,
        }
    }
}

named!(Algorithm, "quota algorithm" {
    SlidingWindow => "sliding-window",
    FixedWindow => "fixed-window",
    SlidingBuckets => "sliding-buckets",
    SlidingLog => "sliding-log",
    TokenBucket => "token-bucket",
});

/// An amount per window, and how it is counted. One quota is one counter per key.
///
/// Built from text or from code; both reject what cannot be counted exactly:
///
/// ```
/// use tollgate::{Algorithm, Quota, Window};
///
/// let quota: Quota = "500/hour".parse()?;
/// assert_eq!(quota, Quota::per_hour(500)?);
///
/// let bursty = Quota::builder(50, Window::MINUTE)
///     .algorithm(Algorithm::TokenBucket)
///     .burst(20)
///     .build()?;
/// assert_eq!(bursty, "50 per minute, token-bucket, burst 20".parse()?);
/// # Ok::<(), tollgate::ValidationErrors>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    amount: u64,
    window: Window,
    window_micros: u64,
    algorithm: Algorithm,
    /// The burst of a token bucket, else the amount.
    capacity: u64,
    /// Number of sliding buckets, else 0.
    buckets: u32,
    /// The tick, the unit of time in products of amounts and times, is 10^n microseconds.
    tick_power: u8,
    tick: Divisor,
    window_ticks: Divisor,
    by_amount: Divisor,
    most_counted: u64,
}

/// Maximum of a plain counter: exact in doubles, too.
pub(crate) const MAX_COUNT: u64 = (1 << 53) - 1;
const DEFAULT_BUCKETS: u32 = 60;
const BLOCKED: u64 = 0;
const UNLIMITED: u64 = u64::MAX;

impl Quota {
    /// Returns `amount` per `window`, counted by the default algorithm.
    pub fn new(amount: u64, window: Window) -> Result<Self, ValidationError> {
        let quota = Self::builder(amount, window).build();
        quota.map_err(ValidationErrors::into_first)
    }

    /// Returns `amount` per any length of time, counted by the default algorithm.
    pub fn per(amount: u64, window: Duration) -> Result<Self, ValidationError> {
        Self::new(amount, Window::new(window)?)
    }

    /// Returns `amount` per second.
    pub fn per_second(amount: u64) -> Result<Self, ValidationError> {
        Self::new(amount, Window::SECOND)
    }

    /// Returns `amount` per minute.
    pub fn per_minute(amount: u64) -> Result<Self, ValidationError> {
        Self::new(amount, Window::MINUTE)
    }

    /// Returns `amount` per hour.
    pub fn per_hour(amount: u64) -> Result<Self, ValidationError> {
        Self::new(amount, Window::HOUR)
    }

    /// Returns `amount` per day.
    pub fn per_day(amount: u64) -> Result<Self, ValidationError> {
        Self::new(amount, Window::DAY)
    }

    /// Returns `amount` per month: with [`Algorithm::FixedWindow`] a calendar month, else 30 days.
    pub fn per_month(amount: u64) -> Result<Self, ValidationError> {
        Self::new(amount, Window::MONTH)
    }

    /// Returns a builder with all settings.
    pub fn builder(amount: u64, window: Window) -> QuotaBuilder {
        QuotaBuilder {
            amount,
            window,
            algorithm: Algorithm::default(),
            burst: None,
            buckets: None,
        }
    }

    /// Returns the quota without a limit: nothing is counted, nothing is denied.
    #[must_use]
    pub const fn unlimited() -> Self {
        Self::special(UNLIMITED)
    }

    /// Returns the quota that denies everything.
    #[must_use]
    pub const fn blocked() -> Self {
        Self::special(BLOCKED)
    }

    const fn special(amount: u64) -> Self {
        Self {
            amount,
            window: Window::SECOND,
            window_micros: Window::SECOND.micros(),
            algorithm: Algorithm::FixedWindow,
            capacity: amount,
            buckets: 0,
            tick_power: 0,
            tick: Divisor::new(1),
            window_ticks: Divisor::new(1_000_000),
            by_amount: Divisor::new(1),
            most_counted: 0,
        }
    }

    /// Returns this quota with another amount. A burst keeps its proportion to the amount.
    pub fn with_amount(&self, amount: u64) -> Result<Self, ValidationError> {
        if self.counts_nothing() {
            return Err(ValidationError::new(
                "quota limit",
                amount,
                format!("no amount for a quota that is `{self}`"),
            ));
        }
        let burst = match self.algorithm {
            Algorithm::TokenBucket if self.capacity != self.amount => {
                let scaled = u128::from(self.capacity) * u128::from(amount);
                let burst = (scaled / u128::from(self.amount)).max(1);
                Some(u64::try_from(burst).unwrap_or(u64::MAX))
            }
            _ => None,
        };
        let builder = QuotaBuilder {
            amount,
            window: self.window,
            algorithm: self.algorithm,
            burst,
            buckets: (self.buckets != 0).then_some(self.buckets),
        };
        builder.build().map_err(ValidationErrors::into_first)
    }

    /// Returns the amount per window: 0 if blocked, `u64::MAX` if unlimited.
    #[must_use]
    pub const fn amount(&self) -> u64 {
        self.amount
    }

    /// Returns the window.
    #[must_use]
    pub const fn window(&self) -> Window {
        self.window
    }

    /// Returns the algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the maximum that is admitted at one instant: the burst of a token bucket, else the
    /// amount.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.capacity
    }

    /// Returns the number of buckets per window; 0 unless the algorithm has buckets.
    #[must_use]
    pub const fn buckets(&self) -> u32 {
        self.buckets
    }

    /// Returns whether nothing is limited.
    #[must_use]
    pub const fn is_unlimited(&self) -> bool {
        self.amount == UNLIMITED
    }

    /// Returns whether everything is denied.
    #[must_use]
    pub const fn is_blocked(&self) -> bool {
        self.amount == BLOCKED
    }

    /// Returns whether it has no counter: `blocked` and `unlimited`.
    pub(crate) const fn counts_nothing(&self) -> bool {
        self.is_blocked() || self.is_unlimited()
    }

    /// Returns whether its windows are days or months of the calendar, which follow the wall clock.
    #[inline]
    pub(crate) fn is_calendar(&self) -> bool {
        self.algorithm == Algorithm::FixedWindow
            && self.window.is_calendar()
            && !self.counts_nothing()
    }

    /// Returns the tick of this quota, a power of ten of microseconds. Capacity becomes free at multiples
    /// of it.
    #[must_use]
    pub const fn tick(&self) -> Duration {
        Duration::from_micros(self.tick.value())
    }

    /// Returns the tick in microseconds.
    pub(crate) const fn by_tick(&self) -> Divisor {
        self.tick
    }

    pub(crate) const fn tick_power(&self) -> u8 {
        self.tick_power
    }

    /// Returns the window in ticks.
    pub(crate) const fn by_window(&self) -> Divisor {
        self.window_ticks
    }

    /// Returns the amount. Only for algorithms that have a tick, whose amounts are small enough.
    pub(crate) const fn by_amount(&self) -> Divisor {
        self.by_amount
    }

    /// Returns the maximum of the counters of a sliding window: at most 32 bits.
    pub(crate) const fn most_counted(&self) -> u64 {
        self.most_counted
    }

    pub(crate) const fn window_micros(&self) -> u64 {
        self.window_micros
    }

    /// Returns the width of a sliding bucket, rounded up to a microsecond.
    pub(crate) const fn bucket_micros(&self) -> u64 {
        self.window_micros.div_ceil(self.buckets as u64)
    }
}

/// The long form, which [`str::parse`] reads back: `50/1m, token-bucket, burst 20`.
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unlimited() {
            return f.write_str("unlimited");
        }
        if self.is_blocked() {
            return f.write_str("blocked");
        }
        write!(f, "{}/{}", self.amount, self.window)?;
        if self.algorithm != Algorithm::default() {
            write!(f, ", {}", self.algorithm)?;
        }
        if self.capacity != self.amount {
            write!(f, ", burst {}", self.capacity)?;
        }
        if self.buckets != 0 && self.buckets != DEFAULT_BUCKETS {
            write!(f, ", buckets {}", self.buckets)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quota({self})")
    }
}
