//! Detects a connection whose server no longer replies.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::error::RedisStoreError;
use crate::clock::{Clock as _, SystemClock, Timestamp};
use crate::sync::locked;

/// Replies of one connection.
///
/// A connection whose other side disappeared without a packet (a cut cable, a stopped process)
/// accepts calls and replies to none. It is closed after `max_silence` without any reply while one was
/// due. One late reply is not enough to close it.
///
/// The dispatcher writes, the connection task reads.
#[derive(Debug)]
pub(super) struct Liveness {
    clock: SystemClock,
    max_silence: Duration,
    opened_at: Timestamp,
    /// Microseconds of the last reply, or of the call that ended a time without calls. 0 if no reply
    /// is due.
    silent_since: AtomicU64,
    calls_in_flight: AtomicUsize,
    has_replied: AtomicBool,
    give_up: Notify,
    error: Mutex<Option<RedisStoreError>>,
}

impl Liveness {
    /// Starts with a connection that was opened now.
    pub(super) fn new(clock: SystemClock, max_silence: Duration) -> Self {
        Self {
            opened_at: clock.now(),
            clock,
            max_silence,
            silent_since: AtomicU64::new(0),
            calls_in_flight: AtomicUsize::new(0),
            has_replied: AtomicBool::new(false),
            give_up: Notify::new(),
            error: Mutex::default(),
        }
    }

    /// A call was sent.
    pub(super) fn call_sent(&self, now: Timestamp) {
        if self.calls_in_flight.fetch_add(1, Ordering::Relaxed) == 0 {
            self.silent_since.store(now.as_micros(), Ordering::Relaxed);
        }
    }

    /// Records the reply to a call. An error reply counts as well.
    pub(super) fn replied(&self, now: Timestamp) {
        self.has_replied.store(true, Ordering::Relaxed);
        let is_last = self.calls_in_flight.fetch_sub(1, Ordering::Relaxed) == 1;
        let since = if is_last { 0 } else { now.as_micros() };
        self.silent_since.store(since, Ordering::Relaxed);
    }

    /// Gives the connection up if it has been silent for too long.
    pub(super) fn check(&self, now: Timestamp, error: &RedisStoreError) {
        let since = self.silent_since.load(Ordering::Relaxed);
        let silent_since = Timestamp::from_micros(since);
        if since > 0 && now.duration_since(silent_since) >= self.max_silence {
            self.give_up(error);
        }
    }

    /// Makes the connection task close the connection.
    pub(super) fn give_up(&self, error: &RedisStoreError) {
        locked(&self.error).get_or_insert_with(|| error.clone());
        self.give_up.notify_one();
    }

    /// Completes when the connection is to be closed.
    pub(super) async fn given_up(&self) {
        self.give_up.notified().await;
    }

    /// Returns why the connection was given up, if it was.
    pub(super) fn error(&self) -> Option<RedisStoreError> {
        locked(&self.error).clone()
    }

    /// Returns whether the connection has replied, and has been open for this long.
    pub(super) fn has_lasted(&self, at_least: Duration) -> bool {
        let age = self.clock.now().duration_since(self.opened_at);
        self.has_replied.load(Ordering::Relaxed) && age >= at_least
    }
}
