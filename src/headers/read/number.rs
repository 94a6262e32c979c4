//! Numbers in headers.

/// Parses a whole number, without sign or fraction.
pub(super) fn whole(text: &str) -> Option<u64> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A number that does not fit is as good as the largest.
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Parses a number with an optional fraction, in millionths, rounded up: `1.5` is 1,500,000.
pub(super) fn millionths(text: &str) -> Option<u64> {
    const DIGITS: usize = 6;
    let text = text.trim();
    let (before, after) = text.split_once('.').unwrap_or((text, "0"));
    let (before, fraction) = (whole(before)?, after);
    whole(fraction)?;
    let (kept, rest) = fraction.split_at(fraction.len().min(DIGITS));
    let scale = 10_u64.pow(u32::try_from(DIGITS - kept.len()).ok()?);
    let is_more = u64::from(rest.bytes().any(|byte| byte != b'0'));
    let micros = whole(kept)?.checked_mul(scale)?.checked_add(is_more)?;
    Some(before.saturating_mul(1_000_000).saturating_add(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_rounded_up() {
        assert_eq!(millionths("1.5"), Some(1_500_000));
        assert_eq!(millionths(" 0.0000001 "), Some(1));
        assert_eq!(millionths("64"), Some(64_000_000));
        assert_eq!(millionths("0.999999999"), Some(1_000_000));
        assert_eq!(millionths("99999999999999999999999"), Some(u64::MAX));
    }

    #[test]
    fn malformed_numbers_are_none() {
        for wrong in [
            "", " ", "-1", "+1", ".5", "1.", "1.5.2", "1e3", "0x10", "soon", "٣",
        ] {
            assert_eq!(millionths(wrong), None, "{wrong:?}");
        }
    }
}
