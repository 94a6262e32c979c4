//! Rings when the store has answered, and knows who waits for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use super::waiter::Waiter;
use crate::sync::{Mutex, lock};

/// A future wakes whoever has polled it last, and nobody else. That one may be kept by somebody who
/// does not come to poll it again for a long time, and all others would wait for him. So the future
/// rings a bell, and those hear it who are served next.
#[derive(Default)]
pub(super) struct WaitQueue {
    has_rung: AtomicBool,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    seats: VecDeque<Arc<Waiter>>,
    /// How many in the queue have left.
    gone: usize,
    /// How many permits are on their way.
    expected: usize,
}

impl WaitQueue {
    /// Whether it has rung, and nobody has looked since.
    #[inline]
    pub(super) fn has_rung(&self) -> bool {
        self.has_rung.load(Ordering::Acquire)
    }

    /// The same for somebody who looks now.
    pub(super) fn answer(&self) -> bool {
        self.has_rung.swap(false, Ordering::AcqRel)
    }

    /// How many wait, those included who have left without a word.
    pub(super) fn waiting(&self) -> usize {
        lock(&self.queue).seats.len()
    }

    /// How many permits are on their way: so many are woken when they come.
    pub(super) fn expect(&self, credits: u64) {
        lock(&self.queue).expected = usize::try_from(credits).unwrap_or(usize::MAX);
    }

    pub(super) fn enter(&self, seat: Arc<Waiter>) {
        lock(&self.queue).seats.push_back(seat);
    }

    /// Who is to be called next.
    pub(super) fn first(&self) -> Option<Arc<Waiter>> {
        lock(&self.queue).seats.front().cloned()
    }

    /// The first was called.
    pub(super) fn remove_first(&self) {
        lock(&self.queue).seats.pop_front();
    }

    /// Somebody has left. They make room when they are half of the queue.
    pub(super) fn has_lost_one(&self) {
        let mut queue = lock(&self.queue);
        queue.gone += 1;
        if queue.gone * 2 > queue.seats.len() {
            queue.seats.retain(|seat| seat.place().is_waiting());
            queue.gone = 0;
        }
    }

    /// Wakes those who are served by what is expected: any of them looks for all. And the last one,
    /// since the others may be kept by somebody who is busy with what he has asked for last.
    pub(super) fn wake_waiters(&self) {
        self.has_rung.store(true, Ordering::Release);
        let queue = lock(&self.queue);
        let (mut wakers, mut expected) = (Vec::new(), queue.expected);
        if let Some(last) = queue.seats.back() {
            last.rouse(&mut wakers);
        }
        for seat in &queue.seats {
            if expected == 0 {
                break;
            }
            expected -= usize::from(seat.rouse(&mut wakers));
        }
        drop(queue);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Wake for WaitQueue {
    fn wake(self: Arc<Self>) {
        self.wake_waiters();
    }
}
