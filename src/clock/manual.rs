//! Clock for tests: [`ManualClock`].

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use slab::Slab;

use super::{Clock, Sleep, Timestamp};
use crate::sync::locked;

/// Clock for tests: it moves only when it is set or advanced. Clones share the same time.
///
/// Sleeping on it takes no real time: a task wakes when the clock is moved to its deadline. The
/// wall clock moves along with it, and can be stepped alone: [`ManualClock::step_wall_forward`],
/// [`ManualClock::step_wall_back`].
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Clock, Limiter, ManualClock};
///
/// let clock = ManualClock::new();
/// let limiter = Limiter::builder().quota("1/minute").clock(clock.clone()).build()?;
/// assert!(limiter.check("alice").wait()?.is_allowed());
/// assert!(limiter.check("alice").wait()?.is_denied());
///
/// clock.advance(Duration::from_secs(120));
/// assert!(limiter.check("alice").wait()?.is_allowed());
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    shared: Arc<Manual>,
}

#[derive(Debug)]
struct Manual {
    now: AtomicU64,
    wall_offset: AtomicI64,
    /// Deadline and waker of each sleeping future.
    sleepers: Mutex<Slab<(Timestamp, Waker)>>,
}

impl ManualClock {
    /// Returns a clock that shows 2025-01-01 00:00:00 UTC: the start of a second, an hour, a day and
    /// a month.
    #[must_use]
    pub fn new() -> Self {
        Self::at(Timestamp::from_secs(1_735_689_600))
    }

    /// Returns a clock that shows `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self {
            shared: Arc::new(Manual {
                now: AtomicU64::new(now.as_micros()),
                wall_offset: AtomicI64::new(0),
                sleepers: Mutex::default(),
            }),
        }
    }

    /// Moves the clock forward.
    pub fn advance(&self, duration: Duration) {
        self.change(|now| now.saturating_add(duration));
    }

    /// Sets the clock, also backwards.
    pub fn set(&self, now: Timestamp) {
        self.change(|_| now);
    }

    /// Steps the wall clock forward, as an operator or NTP does. [`now`](Clock::now) stays the same.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Clock, ManualClock};
    ///
    /// let clock = ManualClock::new();
    /// let now = clock.now();
    /// clock.step_wall_forward(Duration::from_hours(2));
    /// clock.step_wall_back(Duration::from_hours(3));
    /// assert_eq!(clock.now(), now);
    /// assert_eq!(clock.wall_offset(), -3_600_000_000);
    /// ```
    pub fn step_wall_forward(&self, by: Duration) {
        self.step_wall(i64::try_from(by.as_micros()).unwrap_or(i64::MAX));
    }

    /// Steps the wall clock back. [`now`](Clock::now) stays the same.
    pub fn step_wall_back(&self, by: Duration) {
        self.step_wall(-i64::try_from(by.as_micros()).unwrap_or(i64::MAX));
    }

    fn step_wall(&self, by: i64) {
        // Under the lock, so that of two steps at once none is lost.
        let _changing = self.sleepers();
        let offset = self.wall_offset().saturating_add(by);
        self.shared.wall_offset.store(offset, Ordering::SeqCst);
    }

    fn change(&self, change: impl FnOnce(Timestamp) -> Timestamp) {
        let due: Vec<Waker> = {
            // Under the lock, so that of two changes at once none is lost.
            let sleepers = self.sleepers();
            let now = change(self.now());
            self.shared.now.store(now.as_micros(), Ordering::SeqCst);
            let due = sleepers.iter().filter(|(_, (until, _))| *until <= now);
            due.map(|(_, (_, waker))| waker.clone()).collect()
        };
        due.into_iter().for_each(Waker::wake);
    }

    /// Returns the number of futures that sleep on this clock. A test uses it to wait until its task sleeps.
    #[must_use]
    pub fn sleeping(&self) -> usize {
        let sleepers = self.sleepers();
        let now = self.now();
        sleepers
            .iter()
            .filter(|(_, (until, _))| *until > now)
            .count()
    }

    fn sleepers(&self) -> MutexGuard<'_, Slab<(Timestamp, Waker)>> {
        locked(&self.shared.sleepers)
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.shared.now.load(Ordering::SeqCst))
    }

    fn wall_offset(&self) -> i64 {
        self.shared.wall_offset.load(Ordering::SeqCst)
    }

    fn sleep_until(&self, deadline: Timestamp) -> Sleep {
        Box::pin(ManualSleep {
            clock: self.clone(),
            deadline,
            key: None,
        })
    }
}

struct ManualSleep {
    clock: ManualClock,
    deadline: Timestamp,
    /// Key of its entry in `sleepers`, once it has been polled.
    key: Option<usize>,
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        // Under the lock, so that the time does not change between the check and the registration.
        let mut sleepers = this.clock.sleepers();
        if this.clock.now() >= this.deadline {
            return Poll::Ready(());
        }
        let entry = (this.deadline, cx.waker().clone());
        match this.key.and_then(|key| sleepers.get_mut(key)) {
            Some(known) => *known = entry,
            None => this.key = Some(sleepers.insert(entry)),
        }
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.clock.sleepers().try_remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleepers_are_counted_one_by_one_and_leave_when_dropped() {
        let clock = ManualClock::new();
        let soon = clock.now().saturating_add(Duration::from_secs(1));
        let mut context = Context::from_waker(Waker::noop());
        let mut sleeps: Vec<Sleep> = (0..3).map(|_| clock.sleep_until(soon)).collect();
        assert_eq!(clock.sleeping(), 0);
        for sleep in &mut sleeps {
            for _ in 0..2 {
                assert!(sleep.as_mut().poll(&mut context).is_pending());
            }
        }
        assert_eq!(clock.sleeping(), 3);
        sleeps.pop();
        assert_eq!(clock.sleeping(), 2);
        clock.advance(Duration::from_secs(1));
        assert_eq!(clock.sleeping(), 0);
        assert!(sleeps[0].as_mut().poll(&mut context).is_ready());
        drop(sleeps);
        assert!(clock.sleepers().is_empty());
    }

    #[test]
    fn advances_from_several_threads_add_up() {
        let clock = ManualClock::new();
        let start = clock.now();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1_000).for_each(|_| clock.advance(Duration::from_micros(1))));
            }
        });
        assert_eq!(clock.now().duration_since(start), Duration::from_millis(4));
    }
}
