//! Cases that were chosen by hand, each for a guarantee that is easily broken.

mod fixed_window;
mod sliding_buckets;
mod sliding_log;
mod sliding_window;
mod token_bucket;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use tollgate::Algorithm;

use super::Case;
use crate::properties::counters::{Deed, Op};

const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// 2025-01-01 00:00:00 UTC: the start of a second, a minute, an hour, a day and a month.
const START: u64 = 1_735_689_600 * SECOND;

pub(super) fn chosen(algorithm: Algorithm) -> Vec<Case> {
    match algorithm {
        Algorithm::FixedWindow => fixed_window::cases(),
        Algorithm::SlidingBuckets => sliding_buckets::cases(),
        Algorithm::SlidingLog => sliding_log::cases(),
        Algorithm::TokenBucket => token_bucket::cases(),
        _ => sliding_window::cases(),
    }
}

fn case(name: &str, quota: &str) -> Case {
    Case {
        name: name.to_owned(),
        quota: quota.parse().expect("a valid quota"),
        deeds: Vec::new(),
    }
}

/// Builds a case step by step.
impl Case {
    fn decide(self, at: u64, cost: u64) -> Self {
        self.then(Op::Decide, at, cost)
    }

    fn peek(self, at: u64, cost: u64) -> Self {
        self.then(Op::Peek, at, cost)
    }

    fn record(self, at: u64, cost: u64) -> Self {
        self.then(Op::Record, at, cost)
    }

    fn refund(self, charged_at: u64, at: u64, cost: u64) -> Self {
        self.then(Op::Refund(charged_at), at, cost)
    }

    /// The last step was under another amount.
    fn under(mut self, amount: u64) -> Self {
        let last = self.deeds.last_mut().expect("a step");
        last.quota = self.quota.with_amount(amount).expect("a valid amount");
        self
    }

    fn then(mut self, op: Op, at: u64, cost: u64) -> Self {
        let quota = self.quota;
        self.deeds.push(Deed {
            op,
            quota,
            at,
            cost,
        });
        self
    }
}

/// The last microsecond before a moment, in UTC.
fn just_before(moment: &str) -> u64 {
    exactly(moment) - 1
}

fn exactly(moment: &str) -> u64 {
    let moment: DateTime = moment.parse().expect("a date and a time");
    let moment = moment.to_zoned(TimeZone::UTC).expect("UTC");
    u64::try_from(moment.timestamp().as_microsecond()).expect("after 1970")
}
