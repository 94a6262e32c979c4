//! Whether a connection is any good, by what its calls have met with.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::error::RedisStoreError;
use crate::clock::{Clock as _, SystemClock};
use crate::sync::locked;

/// What the calls of one connection have met with.
///
/// A connection whose other side is gone without a word (a cut cable, a stopped process) takes
/// calls for ever and answers none. One late answer proves nothing; silence for longer than
/// `patience`, while there was something to answer, does.
#[derive(Debug)]
pub(super) struct Liveness {
    clock: SystemClock,
    patience: Duration,
    opened_at: u64,
    /// Since when nothing was heard, though something was asked. 0 if nothing is to be heard.
    silent_since: AtomicU64,
    waiting: AtomicUsize,
    has_answered: AtomicBool,
    condemned: Notify,
    why: Mutex<Option<RedisStoreError>>,
}

impl Liveness {
    /// The health of a connection that was opened now.
    pub(super) fn new(clock: SystemClock, patience: Duration) -> Self {
        Self {
            opened_at: clock.now().as_micros(),
            clock,
            patience,
            silent_since: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            has_answered: AtomicBool::new(false),
            condemned: Notify::new(),
            why: Mutex::default(),
        }
    }

    /// Something is asked.
    pub(super) fn asked(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let now = self.clock.now().as_micros();
        let _ = self
            .silent_since
            .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// It was answered, with whatever.
    pub(super) fn answered(&self) {
        self.has_answered.store(true, Ordering::Relaxed);
        let others = self.waiting.fetch_sub(1, Ordering::Relaxed) > 1;
        let since = if others {
            self.clock.now().as_micros()
        } else {
            0
        };
        self.silent_since.store(since, Ordering::Relaxed);
    }

    /// It was not answered in time, and nobody waits for it any more.
    pub(super) fn missed(&self, trouble: &RedisStoreError) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.look(trouble);
    }

    /// An answer is late, and may still come. Gives the connection up if nothing was heard for too
    /// long.
    pub(super) fn look(&self, trouble: &RedisStoreError) {
        let since = self.silent_since.load(Ordering::Relaxed);
        if since > 0 && self.time_since(since) >= self.patience {
            self.condemn(trouble);
        }
    }

    /// The connection is of no use any more.
    pub(super) fn condemn(&self, trouble: &RedisStoreError) {
        locked(&self.why).get_or_insert_with(|| trouble.clone());
        self.condemned.notify_one();
    }

    /// Completes when the connection is of no use any more.
    pub(super) async fn condemned(&self) {
        self.condemned.notified().await;
    }

    /// Why it was condemned, if it was.
    pub(super) fn why(&self) -> Option<RedisStoreError> {
        locked(&self.why).clone()
    }

    /// Whether it has been of use, and for so long.
    pub(super) fn has_lasted(&self, at_least: Duration) -> bool {
        self.has_answered.load(Ordering::Relaxed) && self.time_since(self.opened_at) >= at_least
    }

    fn time_since(&self, micros: u64) -> Duration {
        Duration::from_micros(self.clock.now().as_micros().saturating_sub(micros))
    }
}
