//! The store double of these tests: a memory store whose replies follow a script.

use std::fmt;
use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use tollgate::{
    Batch, MemoryStore, Override, OverrideStore, Overrides, Store, StoreAdmin, StoreError,
    StoreErrorKind, StoreFuture, Subject, Timestamp, Usages,
};

/// How a [`ScriptedStore`] replies from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    /// Each call takes effect and is answered at once.
    Reply,
    /// Each call takes effect at once. Its future is pending for this many polls, like a store
    /// behind a network.
    ReplyAfter(usize),
    /// Each call fails and takes no effect: the server is unavailable.
    Unavailable,
    /// Each call fails and takes no effect: the error is permanent until the settings change.
    Refused,
    /// No call takes effect, and no future completes.
    NeverReply,
}

/// A memory store that follows a [`Script`] and counts its calls. Clones share one state.
#[derive(Clone)]
pub(crate) struct ScriptedStore {
    shared: Arc<SharedState>,
}

struct SharedState {
    memory: MemoryStore,
    script: Mutex<Script>,
    calls: AtomicU64,
    decisions: AtomicU64,
}

impl ScriptedStore {
    pub(crate) fn new(script: Script) -> Self {
        let shared = SharedState {
            memory: MemoryStore::new(),
            script: Mutex::new(script),
            calls: AtomicU64::new(0),
            decisions: AtomicU64::new(0),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    pub(crate) fn follow(&self, script: Script) {
        *self.shared.script.lock().unwrap() = script;
    }

    /// Returns how often one of the four methods of [`Store`] was called.
    pub(crate) fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::SeqCst)
    }

    /// Returns how often `decide` was called.
    pub(crate) fn decisions(&self) -> u64 {
        self.shared.decisions.load(Ordering::SeqCst)
    }

    fn call<T: Unpin + Send + 'static>(
        &self,
        forward: impl FnOnce(&MemoryStore) -> StoreFuture<T>,
    ) -> StoreFuture<T> {
        self.shared.calls.fetch_add(1, Ordering::SeqCst);
        self.reply(forward)
    }

    fn reply<T: Unpin + Send + 'static>(
        &self,
        forward: impl FnOnce(&MemoryStore) -> StoreFuture<T>,
    ) -> StoreFuture<T> {
        let fail = |kind, text| StoreFuture::ready(Err(StoreError::of_kind(kind, text)));
        let script = *self.shared.script.lock().unwrap();
        match script {
            Script::Reply | Script::ReplyAfter(0) => forward(&self.shared.memory),
            Script::ReplyAfter(polls) => reply_after(polls, forward(&self.shared.memory).wait()),
            Script::Unavailable => fail(StoreErrorKind::Unavailable, "it is down"),
            Script::Refused => fail(StoreErrorKind::Permanent, "wrong password; check the URL"),
            Script::NeverReply => StoreFuture::pending(pending()),
        }
    }
}

/// Returns a future that is pending for `polls` polls.
fn reply_after<T: Unpin + Send + 'static>(
    polls: usize,
    result: Result<T, StoreError>,
) -> StoreFuture<T> {
    let (mut left, mut result) = (polls, Some(result));
    StoreFuture::pending(poll_fn(move |context| {
        if left == 0 {
            let polled_again = || Err(StoreError::new("polled after completion"));
            return Poll::Ready(result.take().unwrap_or_else(polled_again));
        }
        left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }))
}

impl Default for ScriptedStore {
    fn default() -> Self {
        Self::new(Script::Reply)
    }
}

impl fmt::Debug for ScriptedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScriptedStore")
    }
}

impl Store for ScriptedStore {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.shared.decisions.fetch_add(1, Ordering::SeqCst);
        self.call(|memory| memory.decide(batch, now))
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.call(|memory| memory.peek(batch, now))
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.call(|memory| memory.record(batch, now))
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        self.call(|memory| memory.refund(batch, charged_at, now))
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        Some(self)
    }

    fn overrides(&self) -> Option<&dyn OverrideStore> {
        Some(self)
    }
}

impl StoreAdmin for ScriptedStore {
    fn reset(&self, batch: &Batch<'_>) -> StoreFuture<()> {
        self.reply(|memory| memory.reset(batch))
    }

    fn reset_subject(&self, subject: &Subject<'_>) -> StoreFuture<()> {
        self.reply(|memory| memory.reset_subject(subject))
    }

    fn clear(&self) -> StoreFuture<()> {
        self.reply(StoreAdmin::clear)
    }

    fn len(&self) -> StoreFuture<usize> {
        self.reply(StoreAdmin::len)
    }

    fn sweep(&self, now: Timestamp) -> StoreFuture<usize> {
        self.reply(|memory| memory.sweep(now))
    }

    fn epoch(&self) -> u64 {
        self.shared.memory.epoch()
    }
}

impl OverrideStore for ScriptedStore {
    fn table(&self) -> &Overrides {
        OverrideStore::table(&self.shared.memory)
    }

    fn set(&self, new: Override) -> StoreFuture<()> {
        self.reply(|memory| OverrideStore::set(memory, new))
    }

    fn remove(&self, subject: &Subject<'_>, rule: &str) -> StoreFuture<bool> {
        self.reply(|memory| OverrideStore::remove(memory, subject, rule))
    }
}
