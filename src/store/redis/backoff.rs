//! Back-off between attempts to connect.

use std::time::Duration;

/// Waits that double up to 800 ms, each reduced by a random part of its half: the processes of a
/// fleet that has lost its server must not reconnect at the same time.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    attempts: u32,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_millis(800);

    /// Returns the wait before the next attempt: zero before the first one. `random` is between 0
    /// and 1.
    pub(super) fn next(&mut self, random: f64) -> Duration {
        let attempt = self.attempts;
        self.attempts = attempt.saturating_add(1);
        let Some(doublings) = attempt.checked_sub(1) else {
            return Duration::ZERO;
        };
        let wait = (Self::FIRST * 2_u32.pow(doublings.min(10))).min(Self::LONGEST);
        wait / 2 + wait.mul_f64(random / 2.0)
    }

    /// Starts again with no wait.
    pub(super) fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_maximum() {
        for random in [0.0, 0.5, 1.0] {
            let mut backoff = Backoff::default();
            assert_eq!(backoff.next(random), Duration::ZERO);
            let mut longest = Backoff::FIRST;
            for _ in 0..100 {
                let expected = longest.mul_f64(0.5 + random / 2.0);
                assert_eq!(backoff.next(random), expected);
                longest = (longest * 2).min(Backoff::LONGEST);
            }
            backoff.reset();
            assert_eq!(backoff.next(random), Duration::ZERO);
        }
    }
}
