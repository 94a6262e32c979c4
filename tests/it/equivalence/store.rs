//! A store that wraps a memory store, so that the layer cannot detect the memory store.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tollgate::store::{StoreFuture, TimeSource};
use tollgate::{
    Batch, Check, Clock, Counter, MemoryStore, OverrideStore, Store, StoreAdmin, Subject,
    Timestamp, Usages, Value,
};

/// Forwards all calls, and records the counters of their batches.
#[derive(Clone, Debug)]
pub(super) struct Forwarding {
    inner: Arc<MemoryStore>,
    /// Whether each reply is pending once before it is ready.
    is_pending_once: bool,
    seen: Arc<Mutex<Seen>>,
}

/// Counters by subject and name.
pub(super) type Seen = BTreeMap<(Vec<(String, Dimension)>, String), Counter>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dimension {
    Text(String),
    Address(IpAddr),
}

impl Forwarding {
    pub(super) fn new(inner: Arc<MemoryStore>, is_pending_once: bool) -> Self {
        Self {
            inner,
            is_pending_once,
            seen: Arc::default(),
        }
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    fn record_counters(&self, batch: &Batch<'_>) {
        let mut seen = self.seen.lock().unwrap();
        for check in batch.checks() {
            let dimensions = check.subject().dimensions();
            let dimensions = dimensions.map(|(name, value)| (name.to_owned(), value.into()));
            let counter = check.counter();
            let algorithm = counter.quota().algorithm();
            let name = format!("{counter}, {}", algorithm.name());
            seen.insert((dimensions.collect(), name), counter.clone());
        }
    }

    fn delay<T: Clone + Send + Unpin + 'static>(&self, answer: StoreFuture<T>) -> StoreFuture<T> {
        if !self.is_pending_once {
            return answer;
        }
        StoreFuture::pending(PendingOnce {
            result: Some(answer.wait()),
            is_polled: false,
        })
    }
}

impl From<Value<'_>> for Dimension {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Text(text) => Self::Text(text.to_owned()),
            Value::Address(address) => Self::Address(address),
            other => panic!("identities have no {other:?}"),
        }
    }
}

/// Returns the state of each counter, in the order of the list.
pub(super) fn usages(store: &MemoryStore, seen: &Seen, now: Timestamp) -> Vec<String> {
    let usage = |((dimensions, name), counter): (&(Vec<_>, String), &Counter)| {
        let values: Vec<(&str, Value<'_>)> = dimensions
            .iter()
            .map(|(name, value): &(String, Dimension)| match value {
                Dimension::Text(text) => (name.as_str(), Value::Text(text)),
                Dimension::Address(address) => (name.as_str(), Value::Address(*address)),
            })
            .collect();
        let subject = Subject::from_dimensions(&values).unwrap();
        let checks = [Check::new(&subject, counter)];
        let usages = store.peek(&Batch::new(&checks).unwrap(), now).wait();
        format!("{name} {dimensions:?}: {:?}", usages.unwrap().usages())
    };
    seen.iter().map(usage).collect()
}

impl Store for Forwarding {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.record_counters(batch);
        self.delay(self.inner.decide(batch, now))
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.delay(self.inner.peek(batch, now))
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.record_counters(batch);
        self.delay(self.inner.record(batch, now))
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        self.delay(self.inner.refund(batch, charged_at, now))
    }

    fn use_clock(&self, clock: &Arc<dyn Clock>) -> TimeSource {
        self.inner.use_clock(clock)
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.inner.admin()
    }

    fn overrides(&self) -> Option<&dyn OverrideStore> {
        self.inner.overrides()
    }
}

/// A result that is pending at the first poll.
struct PendingOnce<T> {
    result: Option<T>,
    is_polled: bool,
}

impl<T: Unpin> Future for PendingOnce<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if self.is_polled {
            return Poll::Ready(self.result.take().expect("not polled after completion"));
        }
        self.is_polled = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
