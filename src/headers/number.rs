//! Whole numbers as text, without the machinery of `format!`: a denial is what happens under
//! attack, and half a dozen numbers go into one.

use http::HeaderValue;

/// `0000`, `0001` … `9999`, one after the other.
static DIGITS: [u8; 40_000] = digits();

/// The same as text, so that small numbers need no memory of their own. (A reference, as a
/// constant would be a second copy of the table.)
static SMALL: &str = match str::from_utf8(&DIGITS) {
    Ok(text) => text,
    Err(_) => "",
};

#[expect(
    clippy::large_stack_arrays,
    reason = "of the compiler, not of the program"
)]
const fn digits() -> [u8; 40_000] {
    let mut digits = [0; 40_000];
    let mut number = 0_u16;
    while number < 10_000 {
        let at = number as usize * 4;
        digits[at] = digit(number / 1_000);
        digits[at + 1] = digit(number / 100 % 10);
        digits[at + 2] = digit(number / 10 % 10);
        digits[at + 3] = digit(number % 10);
        number += 1;
    }
    digits
}

const fn digit(number: u16) -> u8 {
    b'0' + number.to_le_bytes()[0]
}

/// A number below 100, with its leading zero.
#[inline]
pub(crate) fn two_digits(number: u64) -> [u8; 2] {
    let at = (number % 100) as usize * 4;
    [DIGITS[at + 2], DIGITS[at + 3]]
}

/// A number below 10 000, with its leading zeros.
#[inline]
pub(crate) fn four_digits(number: u64) -> [u8; 4] {
    let at = (number % 10_000) as usize * 4;
    [DIGITS[at], DIGITS[at + 1], DIGITS[at + 2], DIGITS[at + 3]]
}

/// How many leading zeros such a number has. The last digit is none of them.
#[inline]
pub(crate) const fn leading_zeros(number: u64) -> usize {
    (number < 1_000) as usize + (number < 100) as usize + (number < 10) as usize
}

/// A number below 10 000 as text that lives for ever.
#[inline]
fn small(number: u64) -> Option<&'static str> {
    if number >= 10_000 {
        return None;
    }
    let zeros = leading_zeros(number);
    let at = (number % 10_000) as usize * 4;
    SMALL.get(at + zeros..at + 4)
}

/// A number in decimal digits, on the stack.
#[derive(Clone, Copy)]
pub(crate) struct Decimal {
    digits: [u8; Self::MOST],
    start: usize,
}

impl Decimal {
    /// The digits of `u64::MAX`.
    const MOST: usize = 20;

    #[inline]
    pub(crate) fn new(mut number: u64) -> Self {
        let mut digits = [b'0'; Self::MOST];
        let mut start = Self::MOST;
        while number >= 100 {
            start -= 2;
            [digits[start], digits[start + 1]] = two_digits(number);
            number /= 100;
        }
        let [tens, ones] = two_digits(number);
        start -= 1;
        digits[start] = ones;
        if number >= 10 {
            start -= 1;
            digits[start] = tens;
        }
        Self { digits, start }
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.digits[self.start..]
    }

    #[inline]
    pub(crate) fn as_str(&self) -> &str {
        str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

/// A number below 10 000 as the value of a header, which needs no memory of its own.
#[inline]
pub(super) fn small_value(number: u64) -> Option<HeaderValue> {
    small(number).map(HeaderValue::from_static)
}

/// A number as the value of a header.
#[inline]
pub(crate) fn header_value(number: u64) -> HeaderValue {
    match small_value(number) {
        Some(value) => value,
        // Exactly as long as needed: a buffer with room to spare costs a second allocation.
        None => HeaderValue::from_bytes(Decimal::new(number).as_bytes())
            .unwrap_or(HeaderValue::from_static("0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_everybody_writes_them() {
        let edges = (0..20).map(|power| 10_u64.pow(power));
        let near = edges.flat_map(|edge| [edge - 1, edge, edge + 1]);
        for number in (0..11_000).chain(near).chain([u64::MAX - 1, u64::MAX]) {
            let expected = number.to_string();
            assert_eq!(Decimal::new(number).as_str(), expected);
            assert_eq!(header_value(number), expected);
        }
        assert_eq!(two_digits(7), *b"07");
        assert_eq!(four_digits(42), *b"0042");
    }
}
