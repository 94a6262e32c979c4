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
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A machine: its time in nanoseconds, and a counter that may do as it likes.
    struct Machine {
        nanos: u64,
        ticks: u64,
        /// Ticks per second.
        speed: u64,
        counter: Option<Counter>,
    }

    impl Machine {
        fn new(ticks: u64, speed: u64) -> Self {
            let mut machine = Self {
                nanos: 0,
                ticks,
                speed,
                counter: None,
            };
            machine.counter = Some(Counter::new(machine.read(100)));
            machine
        }

        fn pass(&mut self, nanos: u64) {
            self.nanos += nanos;
            let ticks = u128::from(nanos) * u128::from(self.speed) / 1_000_000_000;
            self.ticks = self.ticks.wrapping_add(u64::try_from(ticks).unwrap());
        }

        /// Reads both; between the readings, time passes.
        fn read(&mut self, pause: u64) -> Reading {
            let (before, micros) = (self.ticks, self.nanos / 1_000);
            self.pass(pause);
            let after = self.ticks;
            Reading {
                before,
                micros,
                after,
            }
        }

        /// What a clock does. Tells also what the time was at the beginning.
        fn now(&mut self, pause: u64) -> (u64, u64) {
            let true_micros = self.nanos / 1_000;
            let counter = self.counter.take().unwrap();
            let told = counter.now(self.ticks, || self.read(pause));
            self.counter = Some(counter);
            (told, true_micros)
        }

        fn counter(&self) -> &Counter {
            self.counter.as_ref().unwrap()
        }

        /// Until it is trusted.
        fn settle(&mut self) {
            for _ in 0..1_000 {
                self.pass(1_000_000);
                self.now(50);
                if self.counter().tell(self.ticks).is_some() {
                    return;
                }
            }
            panic!("never trusted: {:?}", self.counter);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Whatever the speed, the pauses and how far the system's clock is slewed: ahead only by
        /// rounding, behind by a few microseconds at most, and never back.
        #[test]
        fn tells_the_time(
            start in any::<u64>(),
            speed in 20_000_000..6_000_000_000_u64,
            steps in prop::collection::vec((0..2_000_000_u64, 0..40_000_u64, 0..20_u32), 1..400),
        ) {
            let mut machine = Machine::new(start, speed);
            let mut last = 0;
            for (nanos, pause, kind) in steps {
                match kind {
                    0 => machine.pass(nanos * 5_000), // nobody asks for seconds
                    1 => machine.speed = speed - speed / 2_000 + speed / 1_000 * (nanos % 2),
                    2..8 => machine.pass(nanos / 1_000),
                    _ => machine.pass(nanos),
                }
                let (told, true_micros) = machine.now(pause);
                prop_assert!(told <= true_micros + 1, "{told} is ahead of {true_micros}");
                prop_assert!(told + 25 >= true_micros, "{told} is behind {true_micros}");
                prop_assert!(told >= last, "{told} after {last}");
                last = told;
            }
            prop_assert!(!machine.counter().is_lost.load(Ordering::Relaxed));
        }
    }

    #[test]
    fn it_is_used_at_all() {
        let mut machine = Machine::new(u64::MAX - 5, 2_450_000_000);
        machine.settle();
        for micros in 0..400 {
            machine.pass(1_000);
            assert!(machine.counter().tell(machine.ticks).is_some(), "{micros}");
        }
        machine.pass(200_000);
        assert!(machine.counter().tell(machine.ticks).is_none());
    }

    /// A machine that was moved: the counter of the new one shows something else.
    #[test]
    fn a_counter_that_jumps_is_not_looked_at_again() {
        for jump in [1 << 30, 1 << 60, u64::MAX / 2, u64::MAX - (1 << 30)] {
            let mut machine = Machine::new(1 << 50, 3_000_000_000);
            machine.settle();
            machine.ticks = machine.ticks.wrapping_add(jump);
            for _ in 0..10_000 {
                let (told, true_micros) = machine.now(50);
                assert!(
                    told <= true_micros + 1 && told + 25 >= true_micros,
                    "{jump}"
                );
                machine.pass(100_000);
            }
        }
    }

    /// The same before it is trusted. By a speed that was found across the jump, time would crawl
    /// or stand still, and with it the next reading of the system's clock.
    #[test]
    fn a_jump_while_it_is_watched_does_not_stop_the_time() {
        for jump in [
            1 << 30,
            1 << 40,
            1 << 60,
            u64::MAX / 2,
            u64::MAX - (1 << 30),
        ] {
            let mut machine = Machine::new(1 << 50, 3_000_000_000);
            machine.pass(20_000_000);
            machine.ticks = machine.ticks.wrapping_add(jump);
            for _ in 0..10_000 {
                machine.pass(100_000);
                let (told, true_micros) = machine.now(50);
                assert!(
                    told <= true_micros + 1 && told + 25 >= true_micros,
                    "{told} instead of {true_micros} after {jump}"
                );
            }
        }
    }

    /// A thread that reads the system's clock and is then kept waiting, while others go on.
    #[test]
    fn whoever_is_late_does_not_take_the_counter_for_lost() {
        let mut machine = Machine::new(0, 3_000_000_000);
        machine.settle();
        machine.pass(1_000_000);
        let counter = machine.counter.take().unwrap();
        let told = counter.now(machine.ticks, || {
            let reading = machine.read(50);
            machine.pass(100_000_000);
            counter.now(machine.ticks, || machine.read(50));
            reading
        });
        assert!(!counter.is_lost.load(Ordering::Relaxed));
        assert!(told <= machine.nanos / 1_000 - 100_000);
    }

    /// Two cores whose counters differ by less than a reading is good for.
    #[test]
    fn counters_that_differ_are_found_out() {
        let mut machine = Machine::new(0, 1_000_000_000);
        machine.settle();
        for call in 0..10_000_u64 {
            machine.pass(200_000);
            let apart = if call % 2 == 0 { 100_000 } else { 0 };
            machine.ticks += apart;
            let (told, true_micros) = machine.now(50);
            machine.ticks -= apart;
            assert!(told <= true_micros + 100 + AHEAD);
        }
        assert!(machine.counter().is_lost.load(Ordering::Relaxed));
    }

    /// A counter that stops, or crawls, tells no time.
    #[test]
    fn a_counter_that_is_too_slow_is_never_trusted() {
        for speed in [0, 1_000, 900_000] {
            let mut machine = Machine::new(7, speed);
            for _ in 0..1_000 {
                machine.pass(777_000);
                let (told, true_micros) = machine.now(50);
                assert_eq!(told, true_micros);
            }
        }
    }
}
