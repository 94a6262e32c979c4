//! Division by a number that is known in advance, as a multiplication: [`Divisor`].

/// Exact divisor for numbers below 2^53.
///
/// A decision divides by the quota's window, amount and tick. A division takes ten times as long as a
/// multiplication, so the reciprocals are computed when the quota is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Divisor {
    value: u64,
    /// ⌈2^(54 + bits) / value⌉, where bits = ⌈log2 value⌉: less than 2^55. The error of the
    /// product then stays below one part in `value` for every number below 2^53.
    reciprocal: u64,
    bits: u8,
    rough: Rough,
}

/// Divisor in 16 bits, for the cells of the memory store. Its quotients are up to 1/256 too large and
/// never too small.
///
/// ⌈2^(8 + bits) / value⌉ in the lower ten, bits in the upper six.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rough(u16);

impl Divisor {
    const NUMBER_BITS: u32 = 53;
    /// Shift of a number that places the quotient in the upper half of the product.
    const LIFT: u32 = 10;

    /// Returns a divisor for `value` from 1 to 2^53; 0 counts as 1.
    #[expect(clippy::cast_possible_truncation, reason = "55 bits and 6 bits")]
    pub(crate) const fn new(value: u64) -> Self {
        let value = if value == 0 { 1 } else { value };
        let bits = u64::BITS - (value - 1).leading_zeros();
        let reciprocal = (1_u128 << (u64::BITS - Self::LIFT + bits)).div_ceil(value as u128);
        let mantissa =
            (reciprocal as u64).div_ceil(1 << (u64::BITS - Self::LIFT - Rough::PRECISION));
        Self {
            value,
            reciprocal: reciprocal as u64,
            bits: bits as u8,
            rough: Rough(mantissa as u16 | (bits as u16) << Rough::BITS_AT),
        }
    }

    #[inline]
    pub(crate) const fn rough(self) -> Rough {
        self.rough
    }

    #[inline]
    pub(crate) const fn value(self) -> u64 {
        self.value
    }

    /// Returns `number / value`, rounded down. The number must be below 2^53.
    #[inline]
    pub(crate) const fn divide(self, number: u64) -> u64 {
        debug_assert!(number >> Self::NUMBER_BITS == 0);
        let product = (number << Self::LIFT) as u128 * self.reciprocal as u128;
        ((product >> u64::BITS) as u64) >> self.bits
    }

    /// Returns `number / value`, rounded up. The number must be below 2^53, less the divisor.
    #[inline]
    pub(crate) const fn divide_up(self, number: u64) -> u64 {
        self.divide(number + (self.value - 1))
    }

    /// Returns `number / value`, rounded down, without the latency of the product if the divisor is 1, as
    /// most ticks are.
    #[inline]
    pub(crate) const fn divide_unless_one(self, number: u64) -> u64 {
        if self.value == 1 {
            return number;
        }
        self.divide(number)
    }

    /// Returns the last multiple of the divisor up to `number`.
    #[inline]
    pub(crate) const fn multiple_below(self, number: u64) -> u64 {
        self.divide_unless_one(number) * self.value
    }

    /// Returns the first multiple of the divisor from `number` on.
    #[inline]
    pub(crate) const fn multiple_above(self, number: u64) -> u64 {
        self.divide_up(number) * self.value
    }
}

impl Rough {
    const PRECISION: u32 = 8;
    const BITS_AT: u32 = 10;

    pub(crate) const fn new(bits: u16) -> Self {
        Self(bits)
    }

    #[inline]
    pub(crate) const fn bits(self) -> u16 {
        self.0
    }

    /// Returns `number / value`, rounded up, and up to 1/256 more. The number must be below 2^48.
    pub(crate) const fn divide_up(self, number: u64) -> u64 {
        let mantissa = (self.0 & ((1 << Self::BITS_AT) - 1)) as u64;
        let shift = (self.0 >> Self::BITS_AT) as u32 + Self::PRECISION;
        (number * mantissa).div_ceil(1 << shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: u64 = (1 << 53) - 1;

    fn check_roughly(number: u64, value: u64) {
        let rough = Divisor::new(value).rough();
        let exact = number.div_ceil(value);
        let quotient = Rough::new(rough.bits()).divide_up(number);
        assert!(quotient >= exact, "{number} / {value} became {quotient}");
        assert!(
            quotient <= exact + exact / 256 + 1,
            "{number} / {value} became {quotient}"
        );
    }

    fn check(number: u64, value: u64) {
        let divisor = Divisor::new(value);
        assert_eq!(divisor.divide(number), number / value, "{number} / {value}");
        if number <= LAST - value {
            assert_eq!(
                divisor.divide_up(number),
                number.div_ceil(value),
                "{number} / {value}"
            );
        }
    }

    #[test]
    fn quotient_is_exact_around_powers_and_multiples() {
        let near = |number: u64| (number.saturating_sub(2)..=number + 2).filter(|n| *n <= LAST);
        let powers = || (0..54).flat_map(|bit| near((1 << bit) - 1));
        let round = (0..16).flat_map(|power| near(10_u64.pow(power)));
        for value in powers().chain(round).filter(|value| *value > 0) {
            for number in powers() {
                check(number, value);
                check_roughly(number >> 5, value);
                // The multiples of the divisor, where rounding changes.
                let multiple = number / value * value;
                near(multiple).for_each(|number| check(number, value));
            }
        }
    }

    #[test]
    fn quotient_is_exact_for_random_numbers() {
        for seed in 0..50_000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let number = random.u64(..=LAST);
            let value = (random.u64(1..=LAST) >> random.u32(..53)).max(1);
            check(number, value);
            check(number / value * value, value);
            check((number / value * value).saturating_sub(1), value);
            check_roughly(number >> 5, value);
        }
    }
}
