//! Settings of a quota, checked together.

use super::divisor::Divisor;
use super::{Algorithm, DEFAULT_BUCKETS, MAX_COUNT, Quota, Window};
use crate::error::ValidationError;

/// Amounts × windows stay below this, with room for debts and for a sum of four, below 2^53.
const MAX_PRODUCT: u64 = 1 << 46;
/// Where the counters of a sliding window stop: at a debt of many limits, and so that the sum of
/// two products stays below 2^53.
const MAX_PRODUCT_IN_DEBT: u64 = 1 << 51;
const MAX_LOG: u64 = 100_000;
pub(super) const MAX_BUCKETS: u32 = 3_600;

/// Settings of a [`Quota`]; nothing is checked before [`build`](QuotaBuilder::build).
#[derive(Clone, Debug)]
#[must_use]
pub struct QuotaBuilder {
    pub(super) amount: u64,
    pub(super) window: Window,
    pub(super) algorithm: Algorithm,
    pub(super) burst: Option<u64>,
    pub(super) buckets: Option<u32>,
}

impl QuotaBuilder {
    /// Sets the algorithm. Default: [`Algorithm::SlidingWindow`].
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Sets the capacity of a token bucket. Default: the amount.
    pub fn burst(mut self, burst: u64) -> Self {
        self.burst = Some(burst);
        self
    }

    /// Sets the number of sliding buckets per window. Default: 60.
    pub fn buckets(mut self, buckets: u32) -> Self {
        self.buckets = Some(buckets);
        self
    }

    /// Validates the settings and returns the quota.
    pub fn build(self) -> Result<Quota, ValidationError> {
        if self.amount == 0 {
            return Err(ValidationError::new(
                "quota limit",
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
            return Err(ValidationError::new(
                "quota window",
                self.window,
                format!(
                    "a shorter window with {}, or one of whole seconds",
                    self.algorithm
                ),
            ));
        }
        for (field, value) in [("quota limit", self.amount), ("quota burst", capacity)] {
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
            window_micros: self.window.micros(),
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

    fn checked_burst(&self) -> Result<u64, ValidationError> {
        match self.burst {
            None => Ok(self.amount),
            Some(burst) if self.algorithm != Algorithm::TokenBucket => Err(ValidationError::new(
                "quota burst",
                burst,
                format!(
                    "no burst with {}: only token-bucket has one",
                    self.algorithm
                ),
            )),
            Some(0) => Err(ValidationError::new("quota burst", 0, "at least 1")),
            Some(burst) => Ok(burst),
        }
    }

    fn checked_buckets(&self) -> Result<u32, ValidationError> {
        match self.buckets {
            Some(buckets) if self.algorithm != Algorithm::SlidingBuckets => {
                Err(ValidationError::new(
                    "quota buckets",
                    buckets,
                    format!(
                        "no buckets with {}: only sliding-buckets has them",
                        self.algorithm
                    ),
                ))
            }
            Some(buckets) if !(1..=MAX_BUCKETS).contains(&buckets) => Err(ValidationError::new(
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
    fn check_refill(&self, capacity: u64) -> Result<(), ValidationError> {
        let longest = u128::from(Window::longest().micros()) * u128::from(self.amount);
        let refill = u128::from(capacity) * u128::from(self.window.micros());
        if self.algorithm == Algorithm::TokenBucket && refill > longest {
            return Err(ValidationError::new(
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

    fn too_much(&self, field: &'static str, value: u64, most: u64) -> ValidationError {
        let because = match self.algorithm {
            Algorithm::SlidingLog => {
                " (one entry per request is stored; sliding-buckets allow more)"
            }
            _ => ", so that it can be counted exactly",
        };
        ValidationError::new(
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
