//! Parts of [`Statistics`](super::Statistics).

use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::clock::Timestamp;
use crate::observe::truncate::{MAX_TEXT, truncate};

/// Decisions in a minute or a quarter of an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TimeBucket {
    /// The beginning.
    pub from: Timestamp,
    /// The length. The last bucket of a list is not over yet.
    #[serde(skip)]
    pub length: Duration,
    /// Allowed requests.
    pub allowed: u64,
    /// Denied requests.
    pub denied: u64,
}

/// Statistics of one endpoint of the policy.
///
/// The first 1,024 routes that a layer has had are counted separately. Further routes, which takes
/// many reloads, are counted together as `(others)`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EndpointStatistics {
    /// The route as written in the policy: `GET /v1/secrets/{id}`; `*` for requests that match no
    /// endpoint. JSON has at most 256 bytes of it.
    #[serde(serialize_with = "serialize_truncated")]
    pub name: Arc<str>,
    /// Allowed since the layer was built.
    pub allowed: u64,
    /// Denied since the layer was built.
    pub denied: u64,
    /// Denied within the last hour, in steps of five minutes.
    pub denied_last_hour: u64,
    /// Denied within [the last day](super::Statistics::last_day).
    pub denied_last_day: u64,
    /// Share of the denials of all endpoints within the last day, from 0 to 1.
    pub denied_share: f64,
    /// Average share of its tightest quota that remained for a request over the last hour, from 0 to
    /// 1. A denied request counts as 0. `None` without requests.
    pub average_remaining: Option<f64>,
}

/// Statistics of one quota.
///
/// A request is counted under its binding quota: the one with the least remaining share if it was
/// allowed, the one with the longest wait if it was denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PolicyStatistics {
    /// The name in response headers: `user:secrets:1h`. JSON has at most 256 bytes of it.
    #[serde(serialize_with = "serialize_truncated")]
    pub name: Arc<str>,
    /// Allowed since the layer was built.
    pub allowed: u64,
    /// Denied since the layer was built.
    pub denied: u64,
    /// Allowed with a warning.
    pub warned: u64,
    /// Denials if the rule is a dry run.
    pub would_deny: u64,
}

impl PolicyStatistics {
    /// Returns whether the quota has decided requests. Those of the policy that have not are only
    /// metrics.
    pub(in crate::observe) const fn has_decided(&self) -> bool {
        self.allowed + self.denied + self.would_deny > 0
    }
}

/// Number of distinct callers or addresses.
///
/// Exact up to about 2,000. Beyond that an estimate with a standard error of about 3 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Distinct {
    /// The number.
    pub count: u64,
    /// Whether the number is exact.
    pub exact: bool,
}

/// What denied callers did after they had got a `Retry-After`.
///
/// The first denial of a caller is tracked until the same quota decides a request of it after that
/// time. At most 4,096 callers are tracked at a time; with more, the values are of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retries {
    /// Waited and were admitted.
    pub admitted: u64,
    /// Waited and were denied again, because other callers had used the shared quota.
    pub denied_again: u64,
    /// Requests that came too soon and were denied.
    pub too_soon: u64,
}

impl Retries {
    /// Returns the share of callers that waited and were then admitted, from 0 to 1; `None` if none
    /// has waited.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub fn success(&self) -> Option<f64> {
        let waited = self.admitted + self.denied_again;
        (waited > 0).then(|| self.admitted as f64 / waited as f64)
    }
}

/// With [`success`](Retries::success).
impl Serialize for Retries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::json!({
            "admitted": self.admitted,
            "denied_again": self.denied_again,
            "too_soon": self.too_soon,
            "success": self.success(),
        })
        .serialize(serializer)
    }
}

/// State of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoreStatistics {
    /// Whether the store answers: by its own account, and in the last request.
    pub healthy: bool,
    /// Since when it has not answered.
    pub since: Option<Timestamp>,
    /// Why it does not answer, if the store reports it.
    pub why: Option<String>,
    /// Counters in memory, if the store has some there.
    pub keys: Option<u64>,
    /// Counters in memory that were evicted before they had expired.
    pub evictions: Option<u64>,
    /// Checks that were counted in an overflow counter, which callers share, because all counters in
    /// memory nearby were protected.
    pub overflowed: Option<u64>,
}

/// Serialises at most 256 bytes of a name.
fn serialize_truncated<S: Serializer>(name: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&truncate(name, MAX_TEXT))
}
