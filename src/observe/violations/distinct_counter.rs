//! Number of distinct hashes: exact up to a limit, estimated beyond.

use crate::clock::Timestamp;
use crate::hashed::ByHash;
use crate::observe::statistics::Distinct;

/// Counts distinct hashes over any number of minutes up to an hour.
#[derive(Debug, Default)]
pub(super) struct DistinctCounter {
    /// The minute in which each hash was last seen, for the first [`EXACT`](Self::EXACT) hashes.
    known: ByHash<u32>,
    /// The last minute in which a hash did not fit.
    overflowed: Option<u32>,
    swept: u32,
    sketch: Option<DistinctSketch>,
}

impl DistinctCounter {
    /// Hashes that are counted exactly.
    pub(super) const EXACT: usize = 2_048;

    /// Hashes are dropped so many minutes after they were last seen.
    const MINUTES: u32 = 60;

    pub(super) fn add(&mut self, hash: u64, now: Timestamp) {
        let minute = minute_of(now);
        if let Some(sketch) = &mut self.sketch {
            sketch.add(hash, minute);
        }
        if let Some(seen) = self.known.get_mut(&hash) {
            *seen = minute.max(*seen);
            return;
        }
        if self.known.len() >= Self::EXACT {
            self.sweep(minute);
        }
        if self.known.len() < Self::EXACT {
            self.known.insert(hash, minute);
            return;
        }
        self.overflowed = Some(minute);
        if self.sketch.is_none() {
            let mut sketch = DistinctSketch::new();
            for (hash, seen) in &self.known {
                sketch.add(*hash, *seen);
            }
            sketch.add(hash, minute);
            self.sketch = Some(sketch);
        }
    }

    /// Drops expired hashes, at most once a minute.
    fn sweep(&mut self, minute: u32) {
        if self.swept != minute {
            self.swept = minute;
            let first = minute.saturating_sub(Self::MINUTES - 1);
            self.known.retain(|_, seen| *seen >= first);
            if self.overflowed.is_some_and(|last| last < first) {
                // All hashes of the sketch have expired.
                self.overflowed = None;
                self.sketch = None;
            }
        }
    }

    /// Returns the number of hashes seen in the last `minutes`, including the current minute.
    pub(super) fn count(&self, now: Timestamp, minutes: u32) -> Distinct {
        let first = (minute_of(now) + 1).saturating_sub(minutes);
        let is_exact = self.overflowed.is_none_or(|last| last < first);
        let count = match &self.sketch {
            Some(sketch) if !is_exact => sketch.estimate(first),
            _ => {
                let known = self.known.values();
                known.filter(|seen| **seen >= first).count() as u64
            }
        };
        Distinct {
            count,
            exact: is_exact,
        }
    }
}

/// A `HyperLogLog` over a sliding window: it stores the last minute in which each rank of each
/// register was reached, and estimates from the ranks that were reached within the window.
#[derive(Debug)]
struct DistinctSketch {
    seen: Box<[[u32; RANKS]]>,
}

const REGISTERS: usize = 1_024;
/// Enough for 16 × 10^9 hashes.
const RANKS: usize = 24;

impl DistinctSketch {
    fn new() -> Self {
        Self {
            seen: vec![[0; RANKS]; REGISTERS].into(),
        }
    }

    fn add(&mut self, hash: u64, minute: u32) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "only the low bits are used"
        )]
        let register = hash as usize % REGISTERS;
        let rank = (hash / REGISTERS as u64).trailing_zeros() as usize;
        let seen = &mut self.seen[register][rank.min(RANKS - 1)];
        // Minute 0 (1970) means never.
        *seen = minute.max(*seen);
    }

    fn estimate(&self, first: u32) -> u64 {
        let (mut sum, mut empty) = (0.0, 0.0);
        for ranks in &self.seen {
            let reached = ranks.iter().rposition(|seen| *seen >= first.max(1));
            if let Some(rank) = reached {
                sum += 0.5_f64.powi(i32::try_from(rank + 1).unwrap_or(i32::MAX));
            } else {
                (sum, empty) = (sum + 1.0, empty + 1.0);
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "a power of two")]
        let registers = REGISTERS as f64;
        let raw = 0.7213 / (1.0 + 1.079 / registers) * registers * registers / sum;
        let estimate = if raw <= 2.5 * registers && empty > 0.0 {
            registers * (registers / empty).ln()
        } else {
            raw
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive and far below the maximum"
        )]
        {
            estimate.round() as u64
        }
    }
}

fn minute_of(now: Timestamp) -> u32 {
    let minute = now.as_micros() / 60_000_000;
    u32::try_from(minute).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(1_735_689_600 + secs)
    }

    /// Well-mixed hashes (splitmix64).
    fn hash(number: u64) -> u64 {
        let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    #[test]
    fn few_hashes_are_counted_exactly_by_when_they_were_last_seen() {
        let mut counter = DistinctCounter::default();
        for number in 0..51 {
            counter.add(hash(number), at(0));
            counter.add(hash(number), at(1));
        }
        counter.add(hash(7), at(600));
        let count = |minutes, secs| counter.count(at(secs), minutes);
        let exact = |count| Distinct { count, exact: true };
        assert_eq!(count(10, 599), exact(51));
        assert_eq!(count(10, 600), exact(1));
        assert_eq!(count(60, 3_599), exact(51));
        assert_eq!(count(60, 3_600), exact(1));
        assert_eq!(count(60, 4_200), exact(0));
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    fn many_hashes_are_estimated_within_ten_percent() {
        for many in [3_000_u64, 20_000, 1_000_000] {
            let mut counter = DistinctCounter::default();
            for number in 0..many {
                counter.add(hash(number), at(0));
            }
            let estimate = counter.count(at(0), 10);
            assert!(!estimate.exact);
            let off = (estimate.count as f64 / many as f64 - 1.0).abs();
            assert!(off < 0.1, "{estimate:?} of {many}");
            assert_eq!(counter.known.len(), DistinctCounter::EXACT);

            counter.add(hash(1), at(1_200));
            let later = counter.count(at(1_200), 10);
            assert!(later.exact, "the overflow is outside of the window");
            assert_eq!(later.count, 1);
            assert!(!counter.count(at(1_200), 60).exact);
            for number in 0..3_000 {
                counter.add(hash(number), at(20_000));
            }
            assert_eq!(counter.known.len(), DistinctCounter::EXACT);
        }
    }
}
