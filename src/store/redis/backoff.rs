//! How long to wait before the next attempt.

use std::time::Duration;

use crate::store::chance::chance;

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
