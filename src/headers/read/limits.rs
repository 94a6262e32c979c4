//! What a server has told about a limit.

use std::time::Duration;

use http::HeaderMap;

use super::time::Present;
use super::{counted, structured};
use crate::clock::Timestamp;

/// What a response says about the limit that its request was counted against: the tightest, if
/// it tells of several.
///
/// ```
/// use http::HeaderMap;
/// use tollgate::Timestamp;
/// use tollgate::headers::Limits;
///
/// let at = Timestamp::from_secs(1_730_332_800);
/// let mut headers = HeaderMap::new();
/// headers.insert("x-ratelimit-limit", "500".parse().unwrap());
/// headers.insert("x-ratelimit-remaining", "499".parse().unwrap());
/// headers.insert("x-ratelimit-reset", "1730336400".parse().unwrap());
///
/// let limits = Limits::read(&headers, at).unwrap();
/// assert_eq!(limits.limit(), Some(500));
/// assert_eq!(limits.remaining(), Some(499));
/// assert_eq!(limits.reset_at(), Some(Timestamp::from_secs(1_730_336_400)));
/// ```
///
/// # What is read
///
/// | family | fields |
/// |---|---|
/// | legacy, GitHub | `X-RateLimit-Limit`, `-Remaining`, `-Reset`, `-Policy`, and `-Used`, `-Resource`, `-Reset-After` where they are |
/// | others of the kind | `X-Rate-Limit-*`; `RateLimit-Limit`, `-Remaining`, `-Reset` (IETF drafts up to 6) |
/// | IETF draft 7 | `RateLimit: limit=100, remaining=50, reset=5`, `RateLimit-Policy: 100;w=60` |
/// | IETF drafts 8 to 11 | `RateLimit: "default";r=50;t=5`, `RateLimit-Policy: "default";q=100;w=60`; names may be tokens |
/// | Stripe | `Stripe-Rate-Limited-Reason`, on denials |
///
/// Several lines of a field are one. If families disagree, that with the least remaining counts.
/// What cannot be read is not there.
///
/// # When it resets
///
/// `X-RateLimit-Reset` is a number in three dialects, which are told apart by its size:
///
/// | number | is | because otherwise |
/// |---|---|---|
/// | below 1,000,000,000 | seconds from now | it would be before September 2001 |
/// | below 1,000,000,000,000 | seconds since 1970 | it would be 31 years from now, or before 2001 |
/// | from there on | milliseconds since 1970 | it would be past the year 33658 |
///
/// HTTP dates are understood as well. Where the `Date` of the response says that the server's
/// clock differs from ours by more than two seconds, instants are taken by its clock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(docsrs, doc(cfg(feature = "client")))]
pub struct Limits {
    pub(super) limit: Option<u64>,
    pub(super) remaining: Option<u64>,
    pub(super) reset_at: Option<Timestamp>,
    pub(super) window: Option<Duration>,
    pub(super) policy: Option<Box<str>>,
}

impl Limits {
    /// What the headers of a response say that came at `at`. `None`, if they say nothing, or
    /// nothing that can be understood.
    #[must_use]
    pub fn read(headers: &HeaderMap, at: Timestamp) -> Option<Self> {
        let present = Present::new(headers, at);
        let structured = structured::read(headers, present);
        // Where they say the same, one that says when it resets, and the first: it knows most.
        let all = structured
            .into_iter()
            .chain(counted::read(headers, present));
        all.min_by_key(|limits| {
            let remaining = limits.remaining.unwrap_or(u64::MAX);
            (remaining, limits.reset_at.is_none())
        })
    }

    /// How much there is in all: per window, or at once.
    #[must_use]
    pub const fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// How much was left after the request.
    #[must_use]
    pub const fn remaining(&self) -> Option<u64> {
        self.remaining
    }

    /// When there will be more, on our clock. May lie in the past.
    #[must_use]
    pub const fn reset_at(&self) -> Option<Timestamp> {
        self.reset_at
    }

    /// How long the window is.
    #[must_use]
    pub const fn window(&self) -> Option<Duration> {
        self.window
    }

    /// What the limit is called.
    #[must_use]
    pub fn policy(&self) -> Option<&str> {
        self.policy.as_deref()
    }

    /// Whether this is about the same limit as `other`, as far as they say.
    pub(crate) fn is_about_the_same(&self, other: &Self) -> bool {
        self.policy == other.policy && self.limit == other.limit
    }
}
