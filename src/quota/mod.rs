//! "500 per hour": amount, window, algorithm, burst.

mod divisor;
mod text;
mod window;

use std::fmt;
use std::time::Duration;

use crate::error::Invalid;

use self::divisor::Divisor;
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
    /// All of them, with the names that texts and files use.
    const NAMES: [(Self, &'static str); 5] = [
        (Self::SlidingWindow, "sliding-window"),
        (Self::FixedWindow, "fixed-window"),
        (Self::SlidingBuckets, "sliding-buckets"),
        (Self::SlidingLog, "sliding-log"),
        (Self::TokenBucket, "token-bucket"),
    ];

    /// The name in configuration: `sliding-window`, `token-bucket`, …
    #[must_use]
    pub fn name(self) -> &'static str {
        let known = Self::NAMES.iter().find(|(algorithm, _)| *algorithm == self);
        known.map_or("", |(_, name)| name)
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
/// # Ok::<(), tollgate::Invalid>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    amount: u64,
    window: Window,
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

/// Amounts × windows stay below this, with room for debts and for a sum of four, below 2^53.
const MAX_PRODUCT: u64 = 1 << 46;
/// Where the counters of a sliding window stop: at a debt of many limits, and so that the sum of
/// two products stays below 2^53.
const MAX_PRODUCT_IN_DEBT: u64 = 1 << 51;
/// The most that a plain counter counts to, exactly, also in doubles.
pub(crate) const MAX_COUNT: u64 = (1 << 53) - 1;
const MAX_LOG: u64 = 100_000;
const MAX_BUCKETS: u32 = 3_600;
const DEFAULT_BUCKETS: u32 = 60;
const BLOCKED: u64 = 0;
const UNLIMITED: u64 = u64::MAX;

impl Quota {
    /// `amount` per `window`, counted by the default algorithm.
    pub fn new(amount: u64, window: Window) -> Result<Self, Invalid> {
        Self::builder(amount, window).build()
    }

    /// `amount` per any length of time, counted by the default algorithm.
    pub fn per(amount: u64, window: Duration) -> Result<Self, Invalid> {
        Self::new(amount, Window::new(window)?)
    }

    /// `amount` per second.
    pub fn per_second(amount: u64) -> Result<Self, Invalid> {
        Self::new(amount, Window::SECOND)
    }

    /// `amount` per minute.
    pub fn per_minute(amount: u64) -> Result<Self, Invalid> {
        Self::new(amount, Window::MINUTE)
    }

    /// `amount` per hour.
    pub fn per_hour(amount: u64) -> Result<Self, Invalid> {
        Self::new(amount, Window::HOUR)
    }

    /// `amount` per day.
    pub fn per_day(amount: u64) -> Result<Self, Invalid> {
        Self::new(amount, Window::DAY)
    }

    /// `amount` per month: with [`Algorithm::FixedWindow`] a calendar month, else 30 days.
    pub fn per_month(amount: u64) -> Result<Self, Invalid> {
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
    pub fn with_amount(&self, amount: u64) -> Result<Self, Invalid> {
        if self.is_unlimited() || self.is_blocked() {
            return Err(Invalid::new(
                "quota amount",
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
        self.window.micros()
    }

    /// Sliding buckets: the width of one, rounded up to a microsecond.
    pub(crate) const fn bucket_micros(&self) -> u64 {
        self.window.micros().div_ceil(self.buckets as u64)
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

/// Settings of a [`Quota`]; nothing is checked before [`build`](QuotaBuilder::build).
#[derive(Clone, Debug)]
#[must_use]
pub struct QuotaBuilder {
    amount: u64,
    window: Window,
    algorithm: Algorithm,
    burst: Option<u64>,
    buckets: Option<u32>,
}

impl QuotaBuilder {
    /// How to count.
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// How much a token bucket holds; by default the amount.
    pub fn burst(mut self, burst: u64) -> Self {
        self.burst = Some(burst);
        self
    }

    /// Into how many buckets sliding buckets cut the window; 60 by default.
    pub fn buckets(mut self, buckets: u32) -> Self {
        self.buckets = Some(buckets);
        self
    }

    /// Checks the settings together.
    pub fn build(self) -> Result<Quota, Invalid> {
        if self.amount == 0 {
            return Err(Invalid::new(
                "quota amount",
                self.amount,
                "at least 1; write \"blocked\" to refuse everything, \"unlimited\" to allow it",
            ));
        }
        let (capacity, buckets) = (self.checked_burst()?, self.checked_buckets()?);
        let (tick_power, fits) = choose_tick(self.window, self.amount.max(capacity));
        let most = match self.algorithm {
            Algorithm::FixedWindow | Algorithm::SlidingBuckets => MAX_COUNT,
            Algorithm::SlidingLog => MAX_LOG,
            Algorithm::SlidingWindow => fits.min(u64::from(u32::MAX)),
            Algorithm::TokenBucket => fits,
        };
        if most == 0 {
            return Err(Invalid::new(
                "quota window",
                self.window,
                format!(
                    "a shorter window with {}, or one of whole seconds",
                    self.algorithm
                ),
            ));
        }
        for (field, value) in [("quota amount", self.amount), ("quota burst", capacity)] {
            if value > most {
                return Err(self.too_much(field, value, most));
            }
        }
        self.check_refill(capacity)?;
        let tick = 10_u64.pow(u32::from(tick_power));
        let window_ticks = self.window.micros() / tick;
        Ok(Quota {
            amount: self.amount,
            window: self.window,
            algorithm: self.algorithm,
            capacity,
            buckets,
            tick_power,
            tick: Divisor::new(tick),
            window_ticks: Divisor::new(window_ticks),
            by_amount: Divisor::new(self.amount),
            most_counted: (MAX_PRODUCT_IN_DEBT / window_ticks).min(u64::from(u32::MAX)),
        })
    }

    fn checked_burst(&self) -> Result<u64, Invalid> {
        match self.burst {
            None => Ok(self.amount),
            Some(burst) if self.algorithm != Algorithm::TokenBucket => Err(Invalid::new(
                "quota burst",
                burst,
                format!(
                    "no burst with {}: only token-bucket has one",
                    self.algorithm
                ),
            )),
            Some(0) => Err(Invalid::new("quota burst", 0, "at least 1")),
            Some(burst) => Ok(burst),
        }
    }

    fn checked_buckets(&self) -> Result<u32, Invalid> {
        match self.buckets {
            Some(buckets) if self.algorithm != Algorithm::SlidingBuckets => Err(Invalid::new(
                "quota buckets",
                buckets,
                format!(
                    "no buckets with {}: only sliding-buckets has them",
                    self.algorithm
                ),
            )),
            Some(buckets) if !(1..=MAX_BUCKETS).contains(&buckets) => Err(Invalid::new(
                "quota buckets",
                buckets,
                format!("1 to {MAX_BUCKETS}"),
            )),
            Some(buckets) => Ok(buckets),
            None if self.algorithm == Algorithm::SlidingBuckets => Ok(DEFAULT_BUCKETS),
            None => Ok(0),
        }
    }

    /// A bucket that is whole again only after more than ten years is a mistake.
    fn check_refill(&self, capacity: u64) -> Result<(), Invalid> {
        let longest = u128::from(Window::longest().micros()) * u128::from(self.amount);
        let refill = u128::from(capacity) * u128::from(self.window.micros());
        if self.algorithm == Algorithm::TokenBucket && refill > longest {
            return Err(Invalid::new(
                "quota burst",
                capacity,
                format!(
                    "a burst that {}/{} refills within ten years",
                    self.amount, self.window
                ),
            ));
        }
        Ok(())
    }

    fn too_much(&self, field: &'static str, value: u64, most: u64) -> Invalid {
        let because = match self.algorithm {
            Algorithm::SlidingLog => " (every request is remembered; sliding-buckets take more)",
            _ => ", so that it can be counted exactly",
        };
        Invalid::new(
            field,
            value,
            format!(
                "at most {most} per {} with {}{because}",
                self.window, self.algorithm
            ),
        )
    }
}

/// Finds the finest tick that keeps `needed` × window exact, as a power of ten of microseconds,
/// and the most that it can carry. A tick divides the window and is at most a thousandth of it.
fn choose_tick(window: Window, needed: u64) -> (u8, u64) {
    let window = window.micros();
    let mut power = 0;
    let mut tick = 1;
    while needed > MAX_PRODUCT / (window / tick)
        && window.is_multiple_of(tick * 10)
        && window / (tick * 10) >= 1_000
    {
        tick *= 10;
        power += 1;
    }
    (power, MAX_PRODUCT / (window / tick))
}
