//! Sampling of repeated events.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::hashed::ByHash;
use crate::sync::{Mutex, lock};

/// Decides which events are logged: the first of a kind, then one per interval, and at most
/// [`MAX_PER_SECOND`](Self::MAX_PER_SECOND) of all kinds, so that callers cannot fill a disk.
///
/// Suppressed events are counted, and the next event carries the number. The sum of both is the
/// number of all events, except for those that were suppressed since the last logged event.
#[derive(Debug)]
pub(super) struct LogSampler {
    interval: Duration,
    state: Mutex<SamplerState>,
}

#[derive(Debug, Default)]
struct SamplerState {
    known: ByHash<SampledKind>,
    swept: Timestamp,
    /// The current second, and the events logged in it.
    second: u64,
    logged: u32,
    /// Suppressed events of kinds that are not in `known`.
    others: u64,
}

#[derive(Debug)]
struct SampledKind {
    logged_at: Timestamp,
    suppressed: u64,
}

/// Number of suppressed events since the last logged one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Suppressed {
    /// Of the same kind.
    pub(super) same: u64,
    /// Of kinds that exceeded the limit per second.
    pub(super) others: u64,
}

impl LogSampler {
    /// Kinds that are tracked at a time.
    const CAPACITY: usize = 4_096;

    pub(super) const MAX_PER_SECOND: u32 = 100;

    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval,
            state: Mutex::default(),
        }
    }

    /// Returns `None` if the event is suppressed, otherwise what was suppressed before it.
    pub(super) fn sample(&self, kind: u64, now: Timestamp) -> Option<Suppressed> {
        let mut state = lock(&self.state);
        if let Some(kind) = state.known.get_mut(&kind)
            && now.duration_since(kind.logged_at) < self.interval
        {
            kind.suppressed += 1;
            return None;
        }
        let second = now.as_micros() / 1_000_000;
        if second > state.second {
            (state.second, state.logged) = (second, 0);
        }
        if state.logged >= Self::MAX_PER_SECOND {
            match state.known.get_mut(&kind) {
                Some(kind) => kind.suppressed += 1,
                None => state.others += 1,
            }
            return None;
        }
        state.logged += 1;
        if state.known.len() >= Self::CAPACITY {
            self.sweep(&mut state, now);
        }
        let before = state.known.remove(&kind);
        if state.known.len() < Self::CAPACITY {
            let first = SampledKind {
                logged_at: now,
                suppressed: 0,
            };
            state.known.insert(kind, first);
        }
        Some(Suppressed {
            same: before.map_or(0, |kind| kind.suppressed),
            others: std::mem::take(&mut state.others),
        })
    }

    /// Drops kinds whose interval is over, at most once a second.
    fn sweep(&self, state: &mut SamplerState, now: Timestamp) {
        if now.duration_since(state.swept) < Duration::from_secs(1) {
            return;
        }
        state.swept = now;
        let mut suppressed = 0;
        state.known.retain(|_, kind| {
            let is_recent = now.duration_since(kind.logged_at) < self.interval;
            if !is_recent {
                suppressed += kind.suppressed;
            }
            is_recent
        });
        state.others += suppressed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(10);

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(1_735_689_600_000_000 + millis * 1_000)
    }

    const fn suppressed(same: u64, others: u64) -> Suppressed {
        Suppressed { same, others }
    }

    #[test]
    fn the_first_event_of_a_kind_and_one_per_interval_are_logged() {
        let sampler = LogSampler::new(EVERY);
        assert_eq!(sampler.sample(1, at(0)), Some(suppressed(0, 0)));
        assert_eq!(sampler.sample(1, at(1)), None);
        assert_eq!(sampler.sample(2, at(1)), Some(suppressed(0, 0)));
        assert_eq!(sampler.sample(1, at(9_999)), None);
        assert_eq!(sampler.sample(1, at(10_000)), Some(suppressed(2, 0)));
        assert_eq!(sampler.sample(1, at(20_000)), Some(suppressed(0, 0)));
        assert_eq!(
            sampler.sample(1, at(0)),
            None,
            "an earlier instant is in the same interval"
        );
    }

    /// 100,000 callers, ten times each, in ten minutes.
    #[test]
    fn events_per_second_are_bounded_and_suppressed_events_are_counted() {
        let sampler = LogSampler::new(EVERY);
        let (mut logged, mut accounted) = (0_u64, 0_u64);
        let mut happened = 0_u64;
        for round in 0..10 {
            for caller in 0..100_000_u64 {
                happened += 1;
                if let Some(suppressed) =
                    sampler.sample(caller, at((round * 100_000 + caller) * 6 / 10))
                {
                    logged += 1;
                    accounted += 1 + suppressed.same + suppressed.others;
                }
            }
        }
        assert!(
            logged <= 601 * u64::from(LogSampler::MAX_PER_SECOND),
            "{logged}"
        );
        let state = sampler.state.lock().unwrap();
        assert!(state.known.len() <= LogSampler::CAPACITY);
        let left: u64 = state.known.values().map(|kind| kind.suppressed).sum();
        assert_eq!(accounted + left + state.others, happened);
    }
}
