//! FIFO queue of the requests that wait for a block: [`WaitQueue`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use super::waiter::Waiter;
use crate::sync::{Mutex, lock};

/// Waiters of a lease, and the waker that the pending block is polled with.
///
/// A future wakes only the task that has polled it last. That task may not be polled again for a
/// long time, and all others would wait for it. The pending block therefore wakes the queue, and the
/// queue wakes the tasks that the block serves.
#[derive(Default)]
pub(super) struct WaitQueue {
    /// Whether the pending block has to be polled.
    was_woken: AtomicBool,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiters: VecDeque<Arc<Waiter>>,
    /// Waiters in the queue that have stopped waiting.
    cancelled: usize,
    /// Credits of the pending block.
    expected: usize,
}

impl WaitQueue {
    #[inline]
    pub(super) fn was_woken(&self) -> bool {
        self.was_woken.load(Ordering::Acquire)
    }

    /// Returns whether the pending block has to be polled, and resets it.
    pub(super) fn take_wake(&self) -> bool {
        self.was_woken.swap(false, Ordering::AcqRel)
    }

    /// Returns the number of waiters, including cancelled ones that are still queued.
    pub(super) fn len(&self) -> usize {
        lock(&self.queue).waiters.len()
    }

    /// Sets how many waiters are woken when the pending block arrives.
    pub(super) fn expect_credits(&self, credits: u64) {
        lock(&self.queue).expected = usize::try_from(credits).unwrap_or(usize::MAX);
    }

    pub(super) fn push(&self, waiter: Arc<Waiter>) {
        lock(&self.queue).waiters.push_back(waiter);
    }

    pub(super) fn first(&self) -> Option<Arc<Waiter>> {
        lock(&self.queue).waiters.front().cloned()
    }

    pub(super) fn remove_first(&self, waiter: &Arc<Waiter>) {
        let waiters = &mut lock(&self.queue).waiters;
        // A concurrent `on_cancel` may have removed it. Then the first one still waits.
        waiters.pop_front_if(|first| Arc::ptr_eq(first, waiter));
    }

    /// Counts a cancelled waiter. Removes the cancelled ones when they are half of the queue.
    pub(super) fn on_cancel(&self) {
        let mut queue = lock(&self.queue);
        queue.cancelled += 1;
        if queue.cancelled * 2 > queue.waiters.len() {
            queue.waiters.retain(|waiter| waiter.state().is_waiting());
            queue.cancelled = 0;
        }
    }

    /// Wakes as many waiters as the pending block has credits, and the last one: each of them
    /// assigns the credits of all. The last is woken in case that none of the others is polled soon.
    pub(super) fn wake_waiters(&self) {
        self.was_woken.store(true, Ordering::Release);
        let queue = lock(&self.queue);
        let (mut wakers, mut expected) = (Vec::new(), queue.expected);
        if let Some(last) = queue.waiters.back() {
            last.take_waker(&mut wakers);
        }
        for waiter in &queue.waiters {
            if expected == 0 {
                break;
            }
            expected -= usize::from(waiter.take_waker(&mut wakers));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Batch, Check};
    use crate::clock::Timestamp;
    use crate::key::{Counter, Subject};
    use crate::store::lease::request::LeaseRequest;
    use crate::store::lease::waiter::Grant;

    fn waiter() -> Arc<Waiter> {
        let (subject, quota) = (Subject::from("alice"), "5/minute".parse().expect("valid"));
        let counter = Counter::new("rule", quota).expect("valid");
        let checks = [Check::new(&subject, &counter)];
        let request = LeaseRequest::new(&Batch::new(&checks).expect("valid"));
        Arc::new(Waiter::new(Arc::new(request), Timestamp::EPOCH))
    }

    /// A cancelled waiter can have the granted one removed before `remove_first` runs. Removing the
    /// next one instead would leave its task waiting for ever.
    #[test]
    fn waiter_behind_a_granted_one_stays_queued_when_others_are_cancelled() {
        let queue = WaitQueue::default();
        let [granted, waiting, cancelled] = [waiter(), waiter(), waiter()];
        for waiter in [&granted, &waiting, &cancelled] {
            queue.push(Arc::clone(waiter));
        }
        let _ = granted.state().grant(Grant::Decide);
        let _ = cancelled.cancel();
        queue.on_cancel();
        queue.on_cancel();
        queue.remove_first(&granted);
        let first = queue.first().expect("one waits");
        assert!(Arc::ptr_eq(&first, &waiting));
    }
}
