//! Wakes everybody who waits for the same answer.

use std::mem;
use std::sync::Arc;
use std::task::{Wake, Waker};

use crate::sync::{Mutex, lock};

/// A future wakes whoever has polled it last, and nobody else. That one may be kept by somebody who
/// does not come to poll it again for a long time, and all others would wait for him. So the future
/// rings a bell, and everybody hears it.
#[derive(Default)]
pub(super) struct Bell {
    waiting: Mutex<Vec<Waker>>,
}

impl Bell {
    /// Wakes this one, too, when it next rings.
    pub(super) fn wakes(&self, waker: &Waker) {
        let mut waiting = lock(&self.waiting);
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    pub(super) fn ring(&self) {
        let waiting = mem::take(&mut *lock(&self.waiting));
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }
}
