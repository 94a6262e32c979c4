//! How many wrong credentials a client IP may send.

use std::net::IpAddr;
use std::sync::Arc;

use crate::batch::{Batch, Check};
use crate::clock::{Clock, Timestamp};
use crate::error::ValidationError;
use crate::headers::QuotaName;
use crate::identity_types::Identity;
use crate::key::{Counter, Subject, Value};
use crate::quota::Quota;
use crate::store::{MemoryStore, Store};
use crate::usage::Usage;

/// Counts wrong credentials per client IP.
///
/// It is charged after verification, only for requests in which no credential names a subject and
/// at least one is wrong. It therefore never affects a credential that names one.
///
/// The counters are always in the memory of this process, so that the answer is synchronous. A
/// reload keeps them.
#[derive(Clone, Debug)]
pub(super) struct FailedAuthLimiter {
    counter: Counter,
    name: QuotaName,
    store: Arc<MemoryStore>,
}

impl FailedAuthLimiter {
    /// How many client IPs have a counter of their own.
    const CLIENTS: usize = 100_000;

    pub(super) fn new(quota: Quota) -> Result<Self, ValidationError> {
        let store = MemoryStore::builder().capacity(Self::CLIENTS).build()?;
        Self::with_store(quota, Arc::new(store))
    }

    /// Returns a limiter with the same counters and another quota.
    pub(super) fn with_quota(&self, quota: Quota) -> Result<Self, ValidationError> {
        Self::with_store(quota, Arc::clone(&self.store))
    }

    fn with_store(quota: Quota, store: Arc<MemoryStore>) -> Result<Self, ValidationError> {
        let counter = Counter::new("invalid-credentials", quota)?;
        Ok(Self {
            name: QuotaName::new(Identity::IP, &counter, &quota)?,
            counter,
            store,
        })
    }

    /// Receives the clock whose `now` is passed to [`charge`](Self::charge): calendar windows follow
    /// its wall clock.
    pub(super) fn use_clock(&self, clock: &Arc<dyn Clock>) {
        self.store.use_clock(clock);
    }

    pub(super) const fn name(&self) -> &QuotaName {
        &self.name
    }

    /// The id of the counter.
    pub(super) const fn counter(&self) -> u64 {
        self.counter.id()
    }

    /// Charges one wrong credential. Returns the usage if the quota is exceeded.
    ///
    /// Clients without a known address are not limited: they would share one counter.
    pub(super) fn charge(&self, client_ip: Option<IpAddr>, now: Timestamp) -> Result<(), Usage> {
        let Some(ip) = client_ip else {
            return Ok(());
        };
        let subject = Subject::named((Identity::IP, Value::Address(ip)));
        let check = Check::new(&subject, &self.counter);
        let decided = Batch::new(std::slice::from_ref(&check))
            .map(|batch| self.store.decide(&batch, now).wait());
        match decided {
            Ok(Ok(usages)) if !usages.is_allowed() => Err(usages.usages()[0]),
            // The memory store does not fail. If it did, the request would not be limited.
            _ => Ok(()),
        }
    }
}
