//! Telling the same again and again, but less often.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::hashed::ByHash;
use crate::sync::{Mutex, lock};

/// Decides what is told. The first of its kind always is, the same again only after a while, and
/// all together no more than so many a second: whoever can be denied can fill a disk otherwise.
///
/// Nothing is dropped without being counted: what was told, and what those that were told say
/// was not, make up everything that happened, but for what nobody has told of since.
#[derive(Debug)]
pub(super) struct LogSampler {
    every: Duration,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    known: ByHash<Told>,
    swept: Timestamp,
    /// The second that it is, and how many were told in it.
    second: u64,
    told: u32,
    others: u64,
}

#[derive(Debug)]
struct Told {
    at: Timestamp,
    untold: u64,
}

/// What has not been told since the last time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Suppressed {
    /// Of the same kind.
    pub(super) same: u64,
    /// Of other kinds, of which there were too many.
    pub(super) others: u64,
}

impl LogSampler {
    /// So many kinds are told apart.
    const MOST: usize = 4_096;

    /// So many are told in one second.
    pub(super) const A_SECOND: u32 = 100;

    pub(super) fn new(every: Duration) -> Self {
        Self {
            every,
            inner: Mutex::default(),
        }
    }

    /// Whether to tell of this, and of what else then.
    pub(super) fn sample(&self, kind: u64, now: Timestamp) -> Option<Suppressed> {
        let mut inner = lock(&self.inner);
        if let Some(told) = inner.known.get_mut(&kind)
            && now.duration_since(told.at) < self.every
        {
            told.untold += 1;
            return None;
        }
        let second = now.as_micros() / 1_000_000;
        if second > inner.second {
            (inner.second, inner.told) = (second, 0);
        }
        if inner.told >= Self::A_SECOND {
            match inner.known.get_mut(&kind) {
                Some(told) => told.untold += 1,
                None => inner.others += 1,
            }
            return None;
        }
        inner.told += 1;
        if inner.known.len() >= Self::MOST {
            self.sweep(&mut inner, now);
        }
        let before = inner.known.remove(&kind);
        if inner.known.len() < Self::MOST {
            inner.known.insert(kind, Told { at: now, untold: 0 });
        }
        Some(Suppressed {
            same: before.map_or(0, |told| told.untold),
            others: std::mem::take(&mut inner.others),
        })
    }

    /// Forgets what could be told again, at most once a second.
    fn sweep(&self, inner: &mut Inner, now: Timestamp) {
        if now.duration_since(inner.swept) < Duration::from_secs(1) {
            return;
        }
        inner.swept = now;
        let mut untold = 0;
        inner.known.retain(|_, told| {
            let is_recent = now.duration_since(told.at) < self.every;
            if !is_recent {
                untold += told.untold;
            }
            is_recent
        });
        inner.others += untold;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(10);

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(1_735_689_600_000_000 + millis * 1_000)
    }

    const fn untold(same: u64, others: u64) -> Suppressed {
        Suppressed { same, others }
    }

    #[test]
    fn the_first_is_told_and_the_same_again_after_a_while() {
        let thinning = LogSampler::new(EVERY);
        assert_eq!(thinning.sample(1, at(0)), Some(untold(0, 0)));
        assert_eq!(thinning.sample(1, at(1)), None);
        assert_eq!(thinning.sample(2, at(1)), Some(untold(0, 0)));
        assert_eq!(thinning.sample(1, at(9_999)), None);
        assert_eq!(thinning.sample(1, at(10_000)), Some(untold(2, 0)));
        assert_eq!(thinning.sample(1, at(20_000)), Some(untold(0, 0)));
        assert_eq!(
            thinning.sample(1, at(0)),
            None,
            "a clock that goes back stands still"
        );
    }

    /// A hundred thousand callers, ten times each, in ten minutes.
    #[test]
    fn under_attack_only_so_many_are_told_and_all_are_accounted_for() {
        let thinning = LogSampler::new(EVERY);
        let (mut told, mut accounted) = (0_u64, 0_u64);
        let mut happened = 0_u64;
        for round in 0..10 {
            for caller in 0..100_000_u64 {
                happened += 1;
                if let Some(untold) =
                    thinning.sample(caller, at((round * 100_000 + caller) * 6 / 10))
                {
                    told += 1;
                    accounted += 1 + untold.same + untold.others;
                }
            }
        }
        assert!(told <= 601 * u64::from(LogSampler::A_SECOND), "{told}");
        let inner = thinning.inner.lock().unwrap();
        assert!(inner.known.len() <= LogSampler::MOST);
        let left: u64 = inner.known.values().map(|told| told.untold).sum();
        assert_eq!(accounted + left + inner.others, happened);
    }
}
