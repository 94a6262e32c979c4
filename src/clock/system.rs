//! The machine's time.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use futures_timer::Delay;

use super::counter::{Counter, Reading};
use super::{Clock, Sleep, Timestamp, ticks};

/// The machine's clock: read from the wall once, monotonic from there on.
///
/// A step of the wall clock (NTP, an operator) after the start is not followed, so windows keep
/// their length. The other side of it: whoever starts before the machine knows the time stays
/// off by as much, and a machine that was suspended is behind by as long. That moves the ends
/// of calendar windows and the reset times that are told; waits stay right.
///
/// It is read once or more per request, so where the processor has a counter of its own that ticks
/// steadily (`x86_64`), that tells the time for up to half a millisecond between two readings of
/// the system's clock: to a few microseconds, and checked at every reading.
///
/// ```
/// use tollgate::{Clock, SystemClock};
///
/// let clock = SystemClock::new();
/// assert!(clock.now() <= clock.now());
/// ```
#[derive(Clone, Debug)]
pub struct SystemClock {
    system: System,
    /// Tells the time between two readings, where there is one that can.
    counter: Option<Arc<Counter>>,
}

impl SystemClock {
    /// A clock aligned to the wall clock now.
    #[must_use]
    pub fn new() -> Self {
        let system = System::new();
        let counter = ticks::are_steady().then(|| Arc::new(Counter::new(system.read_both())));
        Self { system, counter }
    }
}

/// The system's clock.
#[derive(Clone, Copy, Debug)]
struct System {
    /// What the wall showed at the start, in microseconds.
    wall: u64,
    started: Instant,
}

impl System {
    fn new() -> Self {
        let (wall, started) = (SystemTime::now(), Instant::now());
        Self {
            wall: Timestamp::from(wall).as_micros(),
            started,
        }
    }

    /// The time in microseconds. It stands still a second before the last instant, so that
    /// whoever goes on from a reading does not get past that.
    fn read(&self) -> u64 {
        const LAST: u64 = Timestamp::MAX.as_micros() - 1_000_000;
        let elapsed = self.started.elapsed();
        // By hand, because `as_micros` goes through 128 bits.
        self.wall
            .saturating_add(elapsed.as_secs().saturating_mul(1_000_000))
            .saturating_add(u64::from(elapsed.subsec_micros()))
            .min(LAST)
    }

    /// The same, between two readings of the counter.
    fn read_both(&self) -> Reading {
        let before = ticks::read();
        let micros = self.read();
        let after = ticks::read();
        Reading {
            before,
            micros,
            after,
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Timestamp {
        Timestamp::again(match &self.counter {
            Some(counter) => counter.now(ticks::read(), || self.system.read_both()),
            None => self.system.read(),
        })
    }

    fn sleep_until(&self, deadline: Timestamp) -> Sleep {
        let clock = self.clone();
        Box::pin(async move {
            // A timer may fire a little early; the promise is about the clock.
            loop {
                let left = deadline.duration_since(clock.now());
                if left.is_zero() {
                    return;
                }
                Delay::new(left).await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On this machine, whatever its counter is like: between two looks at the system's clock.
    #[test]
    fn keeps_to_the_systems_clock() {
        let clock = SystemClock::new();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let end = clock.system.read() + 200_000;
                    let mut last = 0;
                    while last < end {
                        let before = clock.system.read();
                        let told = clock.now().as_micros();
                        let after = clock.system.read();
                        assert!(told + 50 >= before, "{told} is behind {before}");
                        assert!(told <= after + 50, "{told} is ahead of {after}");
                        assert!(told + 1 >= last, "{told} after {last}");
                        last = told;
                    }
                });
            }
        });
    }
}
