//! Settings of a quota, checked together.

use super::divisor::Divisor;
use super::{Algorithm, DEFAULT_BUCKETS, MAX_COUNT, Quota, Window};
use crate::error::{ValidationError, ValidationErrors};

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
    ///
    /// # Errors
    ///
    /// All wrong settings, each with its path: `limit`, `window`, `burst`, `buckets`.
    pub fn build(self) -> Result<Quota, ValidationErrors> {
        let mut errors = ValidationErrors::default();
        if self.amount == 0 {
            let expected =
                "at least 1; write \"blocked\" to deny everything, \"unlimited\" to allow it";
            errors.push(ValidationError::new("quota limit", 0, expected).at("limit"));
        }
        // A wrong burst is checked no further.
        let burst = errors.note(self.checked_burst()).flatten();
        let buckets = errors.note(self.checked_buckets()).unwrap_or_default();
        let capacity = burst.unwrap_or(self.amount);
        let (tick_power, fits) = choose_tick(self.window, self.amount.max(capacity));
        let most = match self.algorithm {
            Algorithm::FixedWindow | Algorithm::SlidingBuckets => MAX_COUNT,
            Algorithm::SlidingLog => MAX_LOG,
            Algorithm::SlidingWindow => fits.min(u64::from(u32::MAX)),
            Algorithm::TokenBucket => fits,
        };
        if most == 0 {
            let expected = format!(
                "a shorter window with {}, or one of whole seconds",
                self.algorithm
            );
            errors.push(ValidationError::new("quota window", self.window, expected).at("window"));
            return Err(errors);
        }
        if self.amount > most {
            errors.push(self.too_much("quota limit", self.amount, most).at("limit"));
        }
        match burst {
            Some(burst) if burst > most => {
                errors.push(self.too_much("quota burst", burst, most).at("burst"));
            }
            Some(burst) if self.amount > 0 => {
                errors.note(self.check_refill(burst));
            }
            _ => {}
        }
        let tick = 10_u64.pow(u32::from(tick_power));
        let window_ticks = self.window.micros() / tick;
        errors.or(Quota {
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

    fn checked_burst(&self) -> Result<Option<u64>, ValidationError> {
        let expected = match self.burst {
            Some(_) if self.algorithm != Algorithm::TokenBucket => format!(
                "no burst with {}: only token-bucket has one",
                self.algorithm
            ),
            Some(0) => "at least 1".to_owned(),
            burst => return Ok(burst),
        };
        let found = self.burst.unwrap_or_default();
        Err(ValidationError::new("quota burst", found, expected).at("burst"))
    }

    fn checked_buckets(&self) -> Result<u32, ValidationError> {
        let expected = match self.buckets {
            Some(_) if self.algorithm != Algorithm::SlidingBuckets => format!(
                "no buckets with {}: only sliding-buckets has them",
                self.algorithm
            ),
            Some(buckets) if !(1..=MAX_BUCKETS).contains(&buckets) => format!("1 to {MAX_BUCKETS}"),
            Some(buckets) => return Ok(buckets),
            None if self.algorithm == Algorithm::SlidingBuckets => return Ok(DEFAULT_BUCKETS),
            None => return Ok(0),
        };
        let found = self.buckets.unwrap_or_default();
        Err(ValidationError::new("quota buckets", found, expected).at("buckets"))
    }

    /// A bucket that is whole again only after more than ten years is a mistake.
    fn check_refill(&self, capacity: u64) -> Result<(), ValidationError> {
        let longest = u128::from(Window::longest().micros()) * u128::from(self.amount);
        let refill = u128::from(capacity) * u128::from(self.window.micros());
        if self.algorithm == Algorithm::TokenBucket && refill > longest {
            let expected = format!(
                "a burst that {}/{} refills within ten years",
                self.amount, self.window
            );
            return Err(ValidationError::new("quota burst", capacity, expected).at("burst"));
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
