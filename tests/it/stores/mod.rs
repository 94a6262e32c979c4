//! Decorators of stores.

mod circuit_breaker;
mod contract;
mod deny_cache;
mod groups;
mod held;
mod lease;
mod lease_ahead;
mod lease_ends;
mod lease_limits;
mod stack;
mod store_failure;

use tollgate::{Batch, Check, Counter, Store, Subject, Usage};

use crate::support::clock::NEW_YEAR_MICROS as START;
use crate::support::clock::at;

pub(crate) fn counter(rule: &str, quota: &str) -> Counter {
    Counter::new(rule, quota.parse().unwrap()).unwrap()
}

pub(crate) fn user(name: &str) -> Subject<'_> {
    Subject::from([("user", name)])
}

/// Decides one check.
pub(crate) fn take(store: &dyn Store, check: Check<'_>, now: u64) -> Usage {
    let batch = Batch::new(std::slice::from_ref(&check)).unwrap();
    store.decide(&batch, at(now)).wait().unwrap().usages()[0]
}
