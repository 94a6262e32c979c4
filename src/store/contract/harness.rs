//! The store under test, with short helpers.

use std::sync::Arc;

use crate::batch::{Batch, Check};
use crate::clock::Timestamp;
use crate::key::{Counter, Subject};
use crate::quota::Quota;
use crate::store::{Store, StoreAdmin};
use crate::usage::{Usage, Usages};

/// 2025-01-01 00:00:00 UTC, where windows of every length start.
pub(super) const START: u64 = 1_735_689_600_000_000;
pub(super) const SECOND: u64 = 1_000_000;
pub(super) const MINUTE: u64 = 60 * SECOND;

/// One quota of each algorithm, all of them five per minute.
pub(super) const FIVE_A_MINUTE: [&str; 5] = [
    "5/minute, sliding-window",
    "5/minute, fixed-window",
    "5/minute, sliding-buckets",
    "5/minute, sliding-log",
    "5/minute, token-bucket",
];

/// [`FIVE_A_MINUTE`] with a start instant for each, one hour apart: a test that advances the clock
/// must not affect the next quota, because stores never go back in time.
pub(super) fn five_a_minute_in_turn() -> impl Iterator<Item = (&'static str, u64)> {
    FIVE_A_MINUTE
        .into_iter()
        .zip((START..).step_by(3_600_000_000))
}

pub(super) struct Harness {
    promise: String,
    pub(super) store: Arc<dyn Store>,
}

impl Harness {
    pub(super) fn new(promise: &str, store: Arc<dyn Store>) -> Self {
        Self {
            promise: promise.to_owned(),
            store,
        }
    }

    /// Panics with the name of the property if `found` is not `wanted`.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "reads better where it is called"
    )]
    #[track_caller]
    pub(super) fn same<T: PartialEq + std::fmt::Debug>(&self, what: &str, found: T, wanted: T) {
        assert!(
            found == wanted,
            "a store {}: {what}: found {found:?}, wanted {wanted:?}",
            self.promise.replace('_', " "),
        );
    }

    pub(super) fn admin(&self) -> &dyn StoreAdmin {
        self.store
            .admin()
            .expect("the suite needs the operations of `StoreAdmin`")
    }

    pub(super) async fn decide(&self, batch: &Batch<'_>, at: u64) -> Usages {
        let answer = self.store.decide(batch, Timestamp::from_micros(at)).await;
        answer.expect("decide must not fail")
    }

    pub(super) async fn peek(&self, batch: &Batch<'_>, at: u64) -> Usages {
        let answer = self.store.peek(batch, Timestamp::from_micros(at)).await;
        answer.expect("peek must not fail")
    }

    pub(super) async fn record(&self, batch: &Batch<'_>, at: u64) -> Usages {
        let answer = self.store.record(batch, Timestamp::from_micros(at)).await;
        answer.expect("record must not fail")
    }

    pub(super) async fn refund(&self, batch: &Batch<'_>, charged_at: u64, at: u64) {
        let (charged_at, at) = (
            Timestamp::from_micros(charged_at),
            Timestamp::from_micros(at),
        );
        let answer = self.store.refund(batch, charged_at, at).await;
        answer.expect("refund must not fail");
    }

    pub(super) async fn len(&self) -> usize {
        self.admin().len().await.expect("len must not fail")
    }

    pub(super) async fn sweep(&self, at: u64) -> usize {
        let answer = self.admin().sweep(Timestamp::from_micros(at)).await;
        answer.expect("sweep must not fail")
    }

    /// Decides a single check.
    pub(super) async fn take(&self, check: Check<'_>, at: u64) -> Usage {
        self.decide(&batch(&[check]), at).await.usages()[0]
    }

    /// Peeks at a single check.
    pub(super) async fn see(&self, check: Check<'_>, at: u64) -> Usage {
        self.peek(&batch(&[check]), at).await.usages()[0]
    }
}

pub(super) fn batch<'a>(checks: &'a [Check<'a>]) -> Batch<'a> {
    Batch::new(checks).expect("the suite's batches are right")
}

pub(super) fn counter(rule: &str, quota: &str) -> Counter {
    Counter::new(rule, self::quota(quota)).expect("the suite's names are plain")
}

pub(super) fn quota(text: &str) -> Quota {
    text.parse().expect("the suite's quotas are right")
}

pub(super) fn user(name: &str) -> Subject<'_> {
    Subject::from([("user", name)])
}
