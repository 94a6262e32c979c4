//! What the pipeline reports of a request.

use std::net::IpAddr;

use super::counters::DecisionCounters;
use crate::clock::Timestamp;
use crate::head::RequestHead;
use crate::key::Subject;
use crate::quota::Window;
use crate::usage::Usage;

/// An allowed request, its endpoint and its binding quota.
#[derive(Clone, Copy)]
pub(crate) struct Allowed<'a> {
    pub(crate) endpoint: &'a DecisionCounters,
    pub(crate) policy: &'a DecisionCounters,
    pub(crate) usage: &'a Usage,
    /// Whether the response has a warning.
    pub(crate) warns: bool,
    pub(crate) now: Timestamp,
}

/// A denied request.
pub(crate) struct Denied<'a> {
    pub(crate) endpoint: &'a DecisionCounters,
    pub(crate) policy: &'a DecisionCounters,
    pub(crate) caller: Subject<'a>,
    pub(crate) address: Option<IpAddr>,
    /// The tier that the identity named.
    #[cfg(feature = "admin")]
    pub(crate) tier: Option<&'a str>,
    /// The id of the counter that denied it.
    pub(crate) counter: u64,
    /// What the request would have added to that counter.
    pub(crate) cost: u64,
    /// When a retry can succeed, if ever.
    pub(crate) until: Option<Timestamp>,
    pub(crate) now: Timestamp,
}

/// Fields of events about a request and a quota.
pub(crate) struct Exceeded<'a> {
    pub(crate) head: RequestHead<'a>,
    pub(crate) endpoint: &'a str,
    pub(crate) policy: &'a str,
    pub(crate) limit: u64,
    pub(crate) used: u64,
    /// What the request adds to `used`, or would have added.
    pub(crate) cost: u64,
    pub(crate) window: Option<Window>,
    pub(crate) retry_after: Option<u64>,
    pub(crate) request_id: &'a str,
}

impl Exceeded<'_> {
    /// Returns `used` plus the cost of this request: 501 for the first denial of a limit of 500.
    pub(super) const fn actual_requests(&self) -> u64 {
        self.used.saturating_add(self.cost)
    }

    pub(super) const fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// Returns the remaining part of the limit in percent, with two decimals.
    #[expect(clippy::cast_precision_loss, reason = "approximate for people")]
    pub(super) fn percentage_remaining(&self) -> f64 {
        let share = self.remaining() as f64 / self.limit.max(1) as f64;
        (share * 10_000.0).round() / 100.0
    }
}

/// A request that is exempt.
pub(crate) struct Exempted<'a> {
    pub(crate) why: &'static str,
    /// Whether the event has the audit target.
    pub(crate) is_audited: bool,
    pub(crate) head: RequestHead<'a>,
    pub(crate) caller: Subject<'a>,
    /// The role that exempts it, if one does.
    pub(crate) role: Option<&'a str>,
    pub(crate) request_id: &'a str,
}

/// A request that is rejected before anything is counted.
pub(crate) struct Rejected<'a> {
    /// The label of the metric and of the event.
    pub(crate) reason: &'static str,
    pub(crate) head: RequestHead<'a>,
    pub(crate) caller: Subject<'a>,
    pub(crate) request_id: &'a str,
    pub(crate) now: Timestamp,
}
