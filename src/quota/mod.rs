//! "500 per hour": amount, window, algorithm, burst.

mod builder;
mod divisor;
mod into;
mod text;
mod window;

use std::fmt;
use std::time::Duration;

use crate::error::ValidationError;

use self::divisor::Divisor;
pub(crate) use self::divisor::Rough;

pub use self::builder::QuotaBuilder;
pub use self::into::IntoQuota;
pub use self::window::Window;

/// How a quota counts. What each promises, and at what price, is in [`crate::docs::algorithms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Algorithm {
    /// Two counters, the older one fading out linearly. Smooth and small; the default.
    #[default]
    SlidingWindow,
    /// One counter per aligned window: simple, and calendar-true for days and months.
    FixedWindow,
    /// Many small counters: never more than the limit in any window, frees a bucket late.
    SlidingBuckets,
    /// One timestamp per request: exact, at the price of memory.
    SlidingLog,
    /// A bucket that refills steadily (GCRA): bursts up to its size, then an even rate.
    TokenBucket,
}

impl Algorithm {
    const ALL: [Self; 5] = [
        Self::SlidingWindow,
        Self::FixedWindow,
        Self::SlidingBuckets,
        Self::SlidingLog,
        Self::TokenBucket,
    ];

    /// Whether its reset is the moment at which it is whole again, and not the end of a window.
    pub(crate) const fn is_whole_again(self) -> bool {
        match self {
            Self::SlidingBuckets | Self::SlidingLog | Self::TokenBucket => true,
            Self::SlidingWindow | Self::FixedWindow => false,
        }
    }

    /// The name in configuration: `sliding-window`, `token-bucket`, …
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlidingWindow => "sliding-window",
            Self::FixedWindow => "fixed-window",
            Self::SlidingBuckets => "sliding-buckets",
            Self::SlidingLog => "sliding-log",
            Self::TokenBucket => "token-bucket",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An amount per window, and how it is counted. One quota is one counter per key.
///
/// From text or from code; both refuse what cannot be counted exactly:
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
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    amount: u64,
    window: Window,
    window_micros: u64,
    algorithm: Algorithm,
    /// What the counter holds: the burst of a token bucket, else the amount.
    capacity: u64,
    /// Of sliding buckets, else 0.
    buckets: u32,
    /// The grain of time in which products of amounts and times are taken: 10^n microseconds.
    tick_power: u8,
    tick: Divisor,
    window_ticks: Divisor,
    by_amount: Divisor,
    most_counted: u64,
}

/// The most that a plain counter counts to, exactly, also in doubles.
pub(crate) const MAX_COUNT: u64 = (1 << 53) - 1;
const DEFAULT_BUCKETS: u32 = 60;
const BLOCKED: u64 = 0;
const UNLIMITED: u64 = u64::MAX;

impl Quota {
    /// `amount` per `window`, counted by the default algorithm.
    pub fn new(amount: u64, window: Window) -> Result<Self, ValidationError> {
        Self::builder(amount, window).build()
    }

    /// `amount` per any length of time, counted by the default algorithm.
    pub fn per(amount: u64, window: Duration) -> Result<Self, ValidationError> {
        Self::new(amount, Window::new(window)?)
    }

    /// `amount` per second.
    pub fn per_second(amount: u64) -> Result<Self, ValidationError> {
        Self::new(amount, Window::SECOND)
    }

    /// `amount` per minute.
    pub fn per_minute(amount: u64) -> Result<Self, ValidationError> {
        Self::new(amount, Window::MINUTE)
    }

    /// `amount` per hour.
    pub fn per_hour(amount: u64) -> Result<Self, ValidationError> {
        Self::new(amount, Window::HOUR)
    }

    /// `amount` per day.
    pub fn per_day(amount: u64) -> Result<Self, ValidationError> {
        Self::new(amount, Window::DAY)
    }

    /// `amount` per month: with [`Algorithm::FixedWindow`] a calendar month, else 30 days.
    pub fn per_month(amount: u64) -> Result<Self, ValidationError> {
        Self::new(amount, Window::MONTH)
    }

    /// All settings, one by one.
    pub fn builder(amount: u64, window: Window) -> QuotaBuilder {
        QuotaBuilder {
            amount,
            window,
            algorithm: Algorithm::default(),
            burst: None,
            buckets: None,
        }
    }

    /// No limit at all: nothing is counted, nothing is denied.
    #[must_use]
    pub const fn unlimited() -> Self {
        Self::special(UNLIMITED)
    }

    /// Nothing is allowed, ever.
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

    /// The same quota with another amount. A burst keeps its proportion to the amount.
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
        QuotaBuilder {
            amount,
            window: self.window,
            algorithm: self.algorithm,
            burst,
            buckets: (self.buckets != 0).then_some(self.buckets),
        }
        .build()
    }

    /// How much per window. 0 if blocked, `u64::MAX` if unlimited.
    #[must_use]
    pub const fn amount(&self) -> u64 {
        self.amount
    }

    /// The window.
    #[must_use]
    pub const fn window(&self) -> Window {
        self.window
    }

    /// The algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The most that can be admitted at one instant: the burst of a token bucket, else the
    /// amount.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.capacity
    }

    /// Into how many buckets the window is cut; 0 unless the algorithm has buckets.
    #[must_use]
    pub const fn buckets(&self) -> u32 {
        self.buckets
    }

    /// Whether nothing is counted.
    #[must_use]
    pub const fn is_unlimited(&self) -> bool {
        self.amount == UNLIMITED
    }

    /// Whether nothing is allowed.
    #[must_use]
    pub const fn is_blocked(&self) -> bool {
        self.amount == BLOCKED
    }

    /// Whether there is no counter behind it: `blocked` and `unlimited`.
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

    /// The grain of time of this quota, a power of ten of microseconds. Capacity comes free at
    /// multiples of it.
    #[must_use]
    pub const fn tick(&self) -> Duration {
        Duration::from_micros(self.tick.value())
    }

    /// The tick in microseconds.
    pub(crate) const fn by_tick(&self) -> Divisor {
        self.tick
    }

    pub(crate) const fn tick_power(&self) -> u8 {
        self.tick_power
    }

    /// The window in ticks.
    pub(crate) const fn by_window(&self) -> Divisor {
        self.window_ticks
    }

    /// The amount. Only for algorithms that have a tick, whose amounts are small enough.
    pub(crate) const fn by_amount(&self) -> Divisor {
        self.by_amount
    }

    /// What the counters of a sliding window stop at: not more than 32 bits.
    pub(crate) const fn most_counted(&self) -> u64 {
        self.most_counted
    }

    pub(crate) const fn window_micros(&self) -> u64 {
        self.window_micros
    }

    /// Sliding buckets: the width of one, rounded up to a microsecond.
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
