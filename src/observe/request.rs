//! What the pipeline reports of a request.

use std::net::IpAddr;

use super::counters::DecisionCounters;
use crate::clock::Timestamp;
use crate::head::RequestHead;
use crate::key::Subject;
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
    /// The id of the counter that denied it.
    pub(crate) counter: u64,
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
    pub(crate) window: u64,
    pub(crate) retry_after: Option<u64>,
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
