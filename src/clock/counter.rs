//! Time between two readings of the system's clock, told by the processor's counter.
//!
//! To read the system's clock, a processor finishes everything that it has begun: next to a
//! decision, which is mostly waiting for memory, that costs as much as the decision. Its counter
//! it reads in passing. But nobody promises that the counter keeps to its speed for months, is
//! the same on all cores, or goes on after the machine was moved to another. So it is trusted for
//! half a millisecond at a time:
//!
//! - It is taken to tick a little slower than it does. What it tells falls behind by about a
//!   microsecond until the system's clock is read again, and is not ahead but by rounding.
//! - What is told never goes back, since the offset is only ever raised.
//! - Its speed is believed when it was found twice in a row. Once may be a machine that slept, or
//!   was moved, while it was watched: by such a speed, time would stand still, and no reading be
//!   due that could tell.
//! - A counter that is found ahead of the system's clock after all has jumped, or differs from
//!   core to core. It is not looked at again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// In microseconds: for how long it is watched to find its speed.
const WATCHED: u64 = 50_000;
/// In microseconds: for how long it tells the time by itself.
const GOOD_FOR: u64 = 500;
/// In microseconds: how far it may be ahead of the system's clock.
const AHEAD: u64 = 20;
/// The part by which it is taken to be slower: four times what a system's clock is slewed by.
const SLOWER: u64 = 512;
/// The part by which two findings of its speed may differ.
const ALIKE: u64 = 256;

/// A reading of the system's clock, in microseconds, between two of the counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) before: u64,
    pub(super) micros: u64,
    pub(super) after: u64,
}

/// The counter, and what is known of it.
#[derive(Debug)]
pub(super) struct Counter {
    /// The ticks that are taken for its beginning: shortly before it was trusted. What it showed
    /// before that may have been another's.
    origin: AtomicU64,
    /// Microseconds per tick, times 2^64.
    rate: AtomicU64,
    /// What is added to the microseconds of the ticks.
    offset: AtomicU64,
    /// The ticks at the last reading.
    read_at: AtomicU64,
    /// For how many ticks a reading is good: none, as long as the counter is not trusted.
    good_for: AtomicU64,
    is_lost: AtomicBool,
    /// The reading since which it is watched.
    watched_since: Mutex<Reading>,
}

impl Counter {
    /// One that is watched from now on.
    pub(super) fn new(first: Reading) -> Self {
        Self {
            origin: AtomicU64::new(0),
            rate: AtomicU64::new(0),
            offset: AtomicU64::new(0),
            read_at: AtomicU64::new(0),
            good_for: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
            watched_since: Mutex::new(first),
        }
    }

    /// The time in microseconds: as the counter tells it, or, where that cannot, as the system's
    /// clock is read.
    #[inline]
    pub(super) fn now(&self, ticks: u64, read: impl FnOnce() -> Reading) -> u64 {
        match self.tell(ticks) {
            Some(told) => told,
            None => self.learn(read),
        }
    }

    /// The time, if the counter can tell it.
    #[inline]
    fn tell(&self, ticks: u64) -> Option<u64> {
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

    /// Reads the system's clock. Says what time to tell.
    #[cold]
    fn learn(&self, read: impl FnOnce() -> Reading) -> u64 {
        // From before the reading. A thread may be kept waiting after it, and what others have
        // learnt meanwhile would make the counter look as if it were ahead.
        let is_trusted = self.good_for.load(Ordering::Acquire) != 0;
        let offset = self.offset.load(Ordering::Acquire);
        let reading = read();
        if !is_trusted {
            self.watch(reading);
            return reading.micros;
        }
        let told = self.micros(reading.before) + offset;
        if told > reading.micros + AHEAD {
            self.is_lost.store(true, Ordering::Relaxed);
            self.good_for.store(0, Ordering::Release);
            return reading.micros;
        }
        self.keep(reading);
        told.max(reading.micros)
    }

    /// Once it was watched for long enough, its speed is known.
    fn watch(&self, last: Reading) {
        // Whoever comes second reads the system's clock, as everybody did so far.
        let Ok(mut first) = self.watched_since.try_lock() else {
            return;
        };
        // Somebody else may have seen to it since: a speed that others go by stays as it is.
        let is_known = self.good_for.load(Ordering::Relaxed) != 0;
        if is_known || self.is_lost.load(Ordering::Relaxed) {
            return;
        }
        if last.micros < first.micros + WATCHED {
            return;
        }
        let (ticks, micros) = (
            last.after.wrapping_sub(first.before),
            last.micros - first.micros,
        );
        // A thread may pause between two readings. If it did for long, they tell little.
        if first.pause().saturating_add(last.pause()) > ticks / (2 * SLOWER) {
            *first = last;
            return;
        }
        let rate = (u128::from(micros - micros / SLOWER) << 64) / u128::from(ticks.max(1));
        // Slower than a megahertz, it could not tell microseconds apart.
        let Ok(rate) = u64::try_from(rate) else {
            return self.is_lost.store(true, Ordering::Relaxed);
        };
        let before = self.rate.swap(rate, Ordering::Relaxed);
        if before.abs_diff(rate) > rate / ALIKE {
            *first = last;
            return;
        }
        let good_for = ticks / micros * GOOD_FOR;
        self.origin
            .store(last.before.wrapping_sub(good_for), Ordering::Relaxed);
        self.keep(last);
        self.good_for.store(good_for, Ordering::Release);
    }

    /// From here on, the counter is looked at together with this reading.
    fn keep(&self, reading: Reading) {
        let Reading {
            before,
            micros,
            after,
        } = reading;
        let offset = micros.saturating_sub(self.micros(after));
        self.offset.fetch_max(offset, Ordering::Relaxed);
        // After a pause between the two, the next one had better read again.
        if self.micros(after).saturating_sub(self.micros(before)) <= AHEAD {
            self.read_at.store(after, Ordering::Release);
        }
    }
}

impl Reading {
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
