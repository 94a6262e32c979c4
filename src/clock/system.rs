//! System clock: [`SystemClock`].

use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use futures_timer::Delay;

use super::counter::{ClockReading, TickCounter};
use super::wall::WallOffset;
use super::{Clock, Sleep, Timestamp, ticks};

/// The machine's clock: a monotonic time line that starts at the wall clock's time, and the
/// difference between the two since then.
///
/// All clocks of a process are the same one: it starts when the first is created. Layers and
/// limiters that share a store therefore pass it instants of one time line, whenever they are
/// built.
///
/// [`now`](Clock::now) does not follow a step of the wall clock (NTP, an operator), so that rate
/// windows keep their length. [`wall_offset`](Clock::wall_offset) does: it is measured again at most
/// every 500 µs, when the system's clock is read, and not once per request. Changes below 10 ms are
/// ignored. A program that starts before the machine has synchronised its time is therefore right as
/// soon as the machine is. After a suspend, during which monotonic time stands still, tokens, maintenance
/// and calendar windows are right at once, and rate windows are behind by the length of the suspend.
///
/// On `x86_64` processors with an invariant time stamp counter, that counter measures up to 500 µs
/// between two readings of the system clock. Its error is a few microseconds, and is checked at each
/// reading.
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
    /// Measures the time between two readings; `None` if the processor has no invariant counter.
    counter: Option<Arc<TickCounter>>,
    wall: Arc<WallOffset>,
}

impl SystemClock {
    /// Returns the clock of this process.
    #[must_use]
    pub fn new() -> Self {
        static CLOCK: OnceLock<SystemClock> = OnceLock::new();
        let clock = CLOCK.get_or_init(|| Self::with_wall(|| Timestamp::from(SystemTime::now())));
        clock.clone()
    }

    /// Creates a clock that reads the wall clock through `read`.
    fn with_wall(read: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let system = System::starting_at(read());
        let counter = ticks::are_steady().then(|| Arc::new(TickCounter::new(system.read_both())));
        Self {
            system,
            counter,
            wall: Arc::new(WallOffset::new(read)),
        }
    }

    fn read_without_counter(&self) -> u64 {
        let now = self.system.read();
        self.refresh_wall(now);
        now
    }

    /// Measures the offset of the wall clock if that is due. `now` is what was just read.
    fn refresh_wall(&self, now: u64) {
        self.wall.refresh(now, || self.system.read());
    }
}

/// Monotonic clock of the operating system.
#[derive(Clone, Copy, Debug)]
struct System {
    /// Wall-clock time at the start, in microseconds.
    wall: u64,
    started: Instant,
}

impl System {
    fn starting_at(wall: Timestamp) -> Self {
        Self {
            wall: wall.as_micros(),
            started: Instant::now(),
        }
    }

    /// Returns the time in microseconds. It stops a second before [`Timestamp::MAX`], so that the counter
    /// does not exceed it between two readings.
    fn read(&self) -> u64 {
        const LAST: u64 = Timestamp::MAX.as_micros() - 1_000_000;
        let elapsed = self.started.elapsed();
        // By hand, because `as_micros` goes through 128 bits.
        self.wall
            .saturating_add(elapsed.as_secs().saturating_mul(1_000_000))
            .saturating_add(u64::from(elapsed.subsec_micros()))
            .min(LAST)
    }

    /// Reads the system clock between two readings of the counter.
    fn read_both(&self) -> ClockReading {
        let before = ticks::read();
        let micros = self.read();
        let after = ticks::read();
        ClockReading {
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
            Some(counter) => counter.now(ticks::read(), || {
                let reading = self.system.read_both();
                self.refresh_wall(reading.micros);
                reading
            }),
            None => self.read_without_counter(),
        })
    }

    #[inline]
    fn wall_offset(&self) -> i64 {
        self.wall.get()
    }

    fn sleep_until(&self, deadline: Timestamp) -> Sleep {
        let clock = self.clone();
        Box::pin(async move {
            // A timer may fire a little early; the deadline is on this clock.
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
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Duration;

    use super::*;

    /// Reads the clock until the offset has been measured since `stepped`, and returns the offset.
    fn offset_after_step(clock: &SystemClock, stepped: &AtomicI64, step: i64) -> i64 {
        stepped.store(step, Ordering::SeqCst);
        let deadline = Instant::now() + Duration::from_secs(5);
        while clock.wall_offset().abs_diff(step) > 1_000 && Instant::now() < deadline {
            clock.now();
        }
        clock.wall_offset()
    }

    #[test]
    fn wall_offset_follows_steps_and_now_does_not() {
        const HOUR: i64 = 3_600_000_000;
        let stepped = Arc::new(AtomicI64::new(0));
        let step = Arc::clone(&stepped);
        let clock = SystemClock::with_wall(move || {
            Timestamp::from(SystemTime::now()).offset_by(step.load(Ordering::SeqCst))
        });
        let (start, started) = (clock.now(), Instant::now());
        // Once while the counter is not trusted yet, and once when it is.
        for pause in [0, 200] {
            std::thread::sleep(Duration::from_millis(pause));
            for step in [2 * HOUR, -2 * HOUR, 24 * HOUR, -24 * HOUR, 0] {
                let offset = offset_after_step(&clock, &stepped, step);
                assert!(offset.abs_diff(step) <= 1_000, "{offset} after {step}");
                let (passed, elapsed) = (clock.now().duration_since(start), started.elapsed());
                assert!(passed <= elapsed + Duration::from_millis(1), "{passed:?}");
                assert!(clock.clone().wall_offset() == offset, "clones differ");
            }
        }
    }

    /// A store converts the instants of all its callers with the offset of one clock. A clock with a
    /// later origin would have a step of the wall clock in its `now` already, and get it twice.
    #[test]
    fn clocks_of_a_process_share_origin_and_offset() {
        let (one, other) = (SystemClock::new(), SystemClock::default());
        assert_eq!(one.system.started, other.system.started);
        assert_eq!(one.system.wall, other.system.wall);
        assert!(Arc::ptr_eq(&one.wall, &other.wall));
    }

    #[test]
    fn wall_offset_is_fresh_for_the_first_reading_after_a_pause() {
        let stepped = Arc::new(AtomicI64::new(0));
        let step = Arc::clone(&stepped);
        let clock = SystemClock::with_wall(move || {
            Timestamp::from(SystemTime::now()).offset_by(step.load(Ordering::SeqCst))
        });
        clock.now();
        stepped.store(7_200_000_000, Ordering::SeqCst);
        // A measurement that the scheduler interrupted is repeated by a later reading.
        let fresh = (0..20).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            clock.now();
            clock.wall_offset().abs_diff(7_200_000_000) <= 1_000
        });
        assert!(fresh, "{}", clock.wall_offset());
    }

    #[test]
    fn time_is_between_two_readings_of_the_system_clock() {
        let clock = SystemClock::new();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let end = clock.system.read() + 200_000;
                    let mut last = 0;
                    while last < end {
                        let before = clock.system.read();
                        let time = clock.now().as_micros();
                        let after = clock.system.read();
                        assert!(time + 50 >= before, "{time} is behind {before}");
                        assert!(time <= after + 50, "{time} is ahead of {after}");
                        assert!(time + 1 >= last, "{time} after {last}");
                        last = time;
                    }
                });
            }
        });
    }
}
