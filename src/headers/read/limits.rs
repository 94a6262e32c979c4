//! The limit of a response: [`Limits`].

use std::time::Duration;

use http::HeaderMap;

use super::time::Present;
use super::{counted, structured};
use crate::clock::Timestamp;

/// The limit in the headers of a response. If there are several, the one with the least remaining.
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
/// assert_eq!(limits.limit, Some(500));
/// assert_eq!(limits.remaining, Some(499));
/// assert_eq!(limits.reset_at, Some(Timestamp::from_secs(1_730_336_400)));
/// ```
///
/// # Headers
///
/// | family | fields |
/// |---|---|
/// | legacy, GitHub | `X-RateLimit-Limit`, `-Remaining`, `-Reset`, `-Policy`, `-Used`, `-Resource`, `-Reset-After` |
/// | similar | `X-Rate-Limit-*`; `RateLimit-Limit`, `-Remaining`, `-Reset` (IETF drafts up to 6) |
/// | IETF draft 7 | `RateLimit: limit=100, remaining=50, reset=5`, `RateLimit-Policy: 100;w=60` |
/// | IETF drafts 8 to 11 | `RateLimit: "default";r=50;t=5`, `RateLimit-Policy: "default";q=100;w=60`; names may be tokens |
/// | Stripe | `Stripe-Rate-Limited-Reason`, on denials |
///
/// Several lines of a field are joined. If families disagree, the one with the least remaining
/// counts. Malformed fields are ignored. At most 32 members of a structured field are read.
///
/// # Reset
///
/// `X-RateLimit-Reset` has three forms, which differ in size:
///
/// | number | is | because otherwise |
/// |---|---|---|
/// | below 1,000,000,000 | seconds from now | it would be before September 2001 |
/// | below 1,000,000,000,000 | seconds since 1970 | it would be 31 years from now, or before 2001 |
/// | from there on | milliseconds since 1970 | it would be past the year 33658 |
///
/// HTTP dates are read as well. If the `Date` of the response differs from the local clock by more
/// than two seconds, instants are relative to `Date`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(docsrs, doc(cfg(feature = "client")))]
#[non_exhaustive]
pub struct Limits {
    /// Limit per window.
    pub limit: Option<u64>,
    /// Rest of the limit after the request.
    pub remaining: Option<u64>,
    /// Reset, by the local clock. May be in the past.
    pub reset_at: Option<Timestamp>,
    /// Length of the window.
    pub window: Option<Duration>,
    /// Name of the limit.
    pub policy: Option<Box<str>>,
}

impl Limits {
    /// Reads the headers of a response that arrived at `at`. Returns `None` if they have no limit.
    #[must_use]
    pub fn read(headers: &HeaderMap, at: Timestamp) -> Option<Self> {
        let present = Present::new(headers, at);
        let structured = structured::read(headers, present);
        // Of equal ones, the first with a reset.
        let all = structured
            .into_iter()
            .chain(counted::read(headers, present));
        all.min_by_key(|limits| {
            let remaining = limits.remaining.unwrap_or(u64::MAX);
            (remaining, limits.reset_at.is_none())
        })
    }
}
