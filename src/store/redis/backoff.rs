//! How long to wait before the next attempt.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;

/// Waits that double, up to a second, each cut short by chance: a fleet that has lost its server
/// must not come back all at once.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    attempts: u32,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_millis(800);

    /// How long to wait now. Nothing at all the first time.
    pub(super) fn next(&mut self) -> Duration {
        let attempt = self.attempts;
        self.attempts = attempt.saturating_add(1);
        let Some(doublings) = attempt.checked_sub(1) else {
            return Duration::ZERO;
        };
        let wait = (Self::FIRST * 2_u32.pow(doublings.min(10))).min(Self::LONGEST);
        wait / 2 + wait.mul_f64(chance() / 2.0)
    }

    /// All is well; the next wait is the first again.
    pub(super) fn reset(&mut self) {
        self.attempts = 0;
    }
}

/// Anything from 0 to 1, by the operating system's randomness.
fn chance() -> f64 {
    let random = RandomState::new().hash_one(0);
    f64::from((random >> 32) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_end_somewhere() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.next(), Duration::ZERO);
        let mut most = Backoff::FIRST;
        for _ in 0..100 {
            let wait = backoff.next();
            assert!(wait >= most / 2 && wait <= most, "{wait:?} of {most:?}");
            most = (most * 2).min(Backoff::LONGEST);
        }
        backoff.reset();
        assert_eq!(backoff.next(), Duration::ZERO);
    }

    #[test]
    fn two_fleets_do_not_march_in_step() {
        let waits = || -> Vec<Duration> {
            let mut backoff = Backoff::default();
            (0..10).map(|_| backoff.next()).collect()
        };
        assert_ne!(waits(), waits());
    }
}
