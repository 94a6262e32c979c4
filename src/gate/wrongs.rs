//! How many wrong credentials one address may show.

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::Arc;

use crate::batch::{Batch, Check};
use crate::clock::Timestamp;
use crate::decision::Usage;
use crate::error::Invalid;
use crate::headers::Label;
use crate::identity::Budget;
use crate::key::Counter;
use crate::policy::Caller;
use crate::quota::Quota;
use crate::store::{MemoryStore, Store};
use crate::who::Identity;

/// Counts credentials that had to be verified and turned out to be wrong, per address.
///
/// Always in this process's memory, whatever store the policy has: it is this process's time
/// that they cost, and whether to spend it must be known without waiting.
#[derive(Clone, Debug)]
pub(super) struct Wrongs {
    counter: Counter,
    label: Label,
    store: Arc<MemoryStore>,
}

/// What one request has been charged for its credentials.
pub(super) struct Tab<'a> {
    wrongs: &'a Wrongs,
    address: Option<IpAddr>,
    now: Timestamp,
    /// Charges of which it is not yet known whether they were deserved.
    open: Cell<u32>,
    /// Whether any was.
    kept: Cell<bool>,
    denied: Cell<Option<Usage>>,
}

impl Wrongs {
    /// More addresses than this share one counter. Each costs an attacker a connection.
    const ADDRESSES: usize = 100_000;

    pub(super) fn new(quota: Quota) -> Result<Self, Invalid> {
        let store = MemoryStore::builder().capacity(Self::ADDRESSES).build()?;
        Self::with_store(quota, Arc::new(store))
    }

    /// The same counts, by another quota.
    pub(super) fn with_quota(&self, quota: Quota) -> Result<Self, Invalid> {
        Self::with_store(quota, Arc::clone(&self.store))
    }

    fn with_store(quota: Quota, store: Arc<MemoryStore>) -> Result<Self, Invalid> {
        let counter = Counter::new("invalid-credentials", quota)?;
        Ok(Self {
            label: Label::new(Identity::IP, &counter, &quota)?,
            counter,
            store,
        })
    }

    pub(super) const fn label(&self) -> &Label {
        &self.label
    }

    /// The number of its counter.
    pub(super) const fn counter(&self) -> u64 {
        self.counter.id()
    }

    pub(super) const fn tab(&self, address: Option<IpAddr>, now: Timestamp) -> Tab<'_> {
        Tab {
            wrongs: self,
            address,
            now,
            open: Cell::new(0),
            kept: Cell::new(false),
            denied: Cell::new(None),
        }
    }
}

impl Budget for Tab<'_> {
    fn charge(&self) -> bool {
        let usage = self.with_check(|check| self.wrongs.store.decide_one(check, self.now).wait());
        match usage {
            Ok((usage, _)) if !usage.is_allowed() => {
                self.denied.set(Some(usage));
                false
            }
            // Memory does not fail; if it did, verifying is the safe thing to do.
            _ => {
                self.open.set(self.open.get().saturating_add(1));
                true
            }
        }
    }

    fn forgive(&self) {
        for _ in 0..self.open.take() {
            self.with_check(|check| {
                if let Ok(batch) = Batch::new(std::slice::from_ref(check)) {
                    let given_back = self.wrongs.store.give_back(&batch, self.now, self.now);
                    // As above.
                    let _ = given_back.wait();
                }
            });
        }
    }

    fn keep(&self) {
        if self.open.take() > 0 {
            self.kept.set(true);
        }
    }
}

impl Tab<'_> {
    /// Whether anything was charged, and not given back.
    pub(super) const fn is_charged(&self) -> bool {
        self.kept.get() || self.open.get() > 0
    }

    /// How the counter stood when it denied.
    pub(super) const fn denied(&self) -> Option<Usage> {
        self.denied.get()
    }

    fn with_check<T>(&self, call: impl FnOnce(&Check<'_>) -> T) -> T {
        let anonymous = Caller {
            identity: None,
            ip: self.address,
        };
        call(&Check::new(&anonymous.known_by(), &self.wrongs.counter))
    }
}
