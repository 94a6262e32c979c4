//! Time between two readings of the system clock, from the processor's time stamp counter.
//!
//! Reading the system clock makes the processor finish all instructions that it has started. Next to
//! a decision, which mostly waits for memory, this costs as much as the decision. Reading the counter
//! does not. The counter may drift, differ between cores, or jump when a virtual machine is migrated.
//! It is therefore used for at most 500 µs after each reading of the system clock:
//!
//! - Its rate is assumed to be slightly lower than measured. The time falls behind by about a
//!   microsecond until the next reading, and is ahead only by rounding.
//! - The time never goes back, because the offset only increases.
//! - A rate is used after two consecutive measurements agree. A single one may include a suspend or
//!   a migration: with such a rate, time would stand still and no further reading would be due.
//! - A counter that is found ahead of the system clock has jumped or differs between cores. It is
//!   not used again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Microseconds between the two readings that measure the rate.
const MEASURED_FOR: u64 = 50_000;
/// Microseconds for which the counter is used after a reading of the system clock.
const GOOD_FOR: u64 = 500;
/// Microseconds by which the counter may be ahead of the system clock.
const MAX_AHEAD: u64 = 20;
/// The rate is lowered by 1 / `SLOWER`: four times the rate at which a system clock is slewed.
const SLOWER: u64 = 512;
/// Two measurements of the rate agree if they differ by less than 1 / `AGREEMENT`.
const AGREEMENT: u64 = 256;

/// Reading of the system clock, in microseconds, between two readings of the counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockReading {
    pub(super) before: u64,
    pub(super) micros: u64,
    pub(super) after: u64,
}

/// Conversion of counter ticks to time.
#[derive(Debug)]
pub(super) struct TickCounter {
    /// Ticks that count as 0: those shortly before the counter was first used. Earlier ticks may be
    /// those of another machine.
    origin: AtomicU64,
    /// Microseconds per tick, times 2^64.
    rate: AtomicU64,
    /// Microseconds to add to those of the ticks.
    offset: AtomicU64,
    /// Ticks at the last reading of the system clock.
    read_at: AtomicU64,
    /// Ticks for which a reading is valid; 0 until the rate is known.
    good_for: AtomicU64,
    is_lost: AtomicBool,
    /// First reading of the running measurement of the rate.
    measured_since: Mutex<ClockReading>,
}

impl TickCounter {
    /// Creates a counter whose rate is measured from this reading on.
    pub(super) fn new(first: ClockReading) -> Self {
        Self {
            origin: AtomicU64::new(0),
            rate: AtomicU64::new(0),
            offset: AtomicU64::new(0),
            read_at: AtomicU64::new(0),
            good_for: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
            measured_since: Mutex::new(first),
        }
    }

    /// Returns the time in microseconds: from the counter if its last reading is valid, else from the
    /// system clock.
    #[inline]
    pub(super) fn now(&self, ticks: u64, read: impl FnOnce() -> ClockReading) -> u64 {
        match self.time_at(ticks) {
            Some(time) => time,
            None => self.read_system(read),
        }
    }

    /// Returns the time if the last reading is still valid.
    #[inline]
    fn time_at(&self, ticks: u64) -> Option<u64> {
        let good_for = self.good_for.load(Ordering::Acquire);
        let since = ticks.wrapping_sub(self.read_at.load(Ordering::Acquire));
        (since < good_for).then(|| self.at(ticks))
    }

    #[inline]
    fn at(&self, ticks: u64) -> u64 {
        self.micros(ticks) + self.offset.load(Ordering::Relaxed)
    }

    #[inline]
    fn micros(&self, ticks: u64) -> u64 {
        let ticks = ticks.wrapping_sub(self.origin.load(Ordering::Relaxed));
        high_half(ticks, self.rate.load(Ordering::Relaxed))
    }

    /// Reads the system clock. Returns the time.
    #[cold]
    fn read_system(&self, read: impl FnOnce() -> ClockReading) -> u64 {
        // Loaded before the reading. If this thread is preempted after the reading, the later readings
        // of other threads would make the counter look as if it were ahead.
        let is_rate_known = self.good_for.load(Ordering::Acquire) != 0;
        let offset = self.offset.load(Ordering::Acquire);
        let reading = read();
        if !is_rate_known {
            self.measure_rate(reading);
            return reading.micros;
        }
        let time = self.micros(reading.before) + offset;
        if time > reading.micros + MAX_AHEAD {
            self.is_lost.store(true, Ordering::Relaxed);
            self.good_for.store(0, Ordering::Release);
            return reading.micros;
        }
        self.anchor(reading);
        time.max(reading.micros)
    }

    /// Measures the rate once enough time has passed since the first reading.
    fn measure_rate(&self, last: ClockReading) {
        // If another thread measures, this one uses its reading of the system clock.
        let Ok(mut first) = self.measured_since.try_lock() else {
            return;
        };
        // Another thread may have finished the measurement. A rate that is in use does not change.
        let is_known = self.good_for.load(Ordering::Relaxed) != 0;
        if is_known || self.is_lost.load(Ordering::Relaxed) {
            return;
        }
        if last.micros < first.micros + MEASURED_FOR {
            return;
        }
        let (ticks, micros) = (
            last.after.wrapping_sub(first.before),
            last.micros - first.micros,
        );
        // A thread may be preempted between two readings. A long pause makes the rate too inexact.
        if first.pause().saturating_add(last.pause()) > ticks / (2 * SLOWER) {
            *first = last;
            return;
        }
        let rate = (u128::from(micros - micros / SLOWER) << 64) / u128::from(ticks.max(1));
        // Below 1 MHz a tick is longer than a microsecond.
        let Ok(rate) = u64::try_from(rate) else {
            return self.is_lost.store(true, Ordering::Relaxed);
        };
        let before = self.rate.swap(rate, Ordering::Relaxed);
        if before.abs_diff(rate) > rate / AGREEMENT {
            *first = last;
            return;
        }
        let good_for = ticks / micros * GOOD_FOR;
        self.origin
            .store(last.before.wrapping_sub(good_for), Ordering::Relaxed);
        self.anchor(last);
        self.good_for.store(good_for, Ordering::Release);
    }

    /// Uses the counter from this reading on.
    fn anchor(&self, reading: ClockReading) {
        let ClockReading {
            before,
            micros,
            after,
        } = reading;
        let offset = micros.saturating_sub(self.micros(after));
        self.offset.fetch_max(offset, Ordering::Relaxed);
        // After a pause between the two, the next call reads the system clock again.
        if self.micros(after).saturating_sub(self.micros(before)) <= MAX_AHEAD {
            self.read_at.store(after, Ordering::Release);
        }
    }
}

impl ClockReading {
    fn pause(&self) -> u64 {
        self.after.wrapping_sub(self.before)
    }
}

#[inline]
fn high_half(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

#[cfg(test)]
mod tests;
