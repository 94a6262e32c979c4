//! Share of a limit that one process may admit while the store is unavailable.

use crate::quota::Quota;

/// Share of a limit, above 0 and at most 1, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocalShare(u32);

impl LocalShare {
    const WHOLE: u32 = 1_000_000;

    /// Rounds to millionths, and clamps to the allowed range.
    pub(super) fn new(share: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and a million; a float that is cast stops at the ends"
        )]
        let millionths = (share * f64::from(Self::WHOLE)).round() as u32;
        Self(millionths.clamp(1, Self::WHOLE))
    }

    /// Returns this share of a quota, rounded down, at least 1. `blocked` and `unlimited` are
    /// returned unchanged.
    pub(super) fn of(self, quota: &Quota) -> Quota {
        if quota.counts_nothing() {
            return *quota;
        }
        let amount = u128::from(quota.amount()) * u128::from(self.0) / u128::from(Self::WHOLE);
        let amount = u64::try_from(amount).unwrap_or(u64::MAX).max(1);
        quota.with_amount(amount).unwrap_or(*quota)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_is_rounded_down_and_at_least_one() {
        for (quota, share, expected) in [
            ("100/1m", 0.25, "25/1m"),
            ("10/1m", 0.333, "3/1m"),
            ("3/1m", 0.25, "1/1m"),
            ("100/1m", 1.0, "100/1m"),
            ("100/1m", 1e-9, "1/1m"),
            (
                "50/1m, token-bucket, burst 20",
                0.5,
                "25/1m, token-bucket, burst 10",
            ),
            ("blocked", 0.5, "blocked"),
            ("unlimited", 0.5, "unlimited"),
        ] {
            let quota: Quota = quota.parse().expect("valid");
            let share = LocalShare::new(share).of(&quota);
            assert_eq!(share.to_string(), expected, "{quota}");
        }
    }
}
