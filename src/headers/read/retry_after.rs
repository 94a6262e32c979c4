//! Reads `Retry-After`.

use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;

use super::number::millionths;
use super::time::{Present, http_date};
use crate::clock::Timestamp;

/// Returns the wait of `Retry-After` in a response that arrived at `at`.
///
/// Reads seconds, also with a fraction, and dates in the three forms of HTTP. A date is relative to
/// the `Date` of the response if that differs from the local clock by more than two seconds. Of
/// several lines the longest wait counts. Malformed lines are ignored.
///
/// ```
/// use std::time::Duration;
/// use http::HeaderMap;
/// use tollgate::Timestamp;
/// use tollgate::headers::read_retry_after;
///
/// let at = Timestamp::from_secs(1_445_412_420);
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT".parse().unwrap());
/// assert_eq!(read_retry_after(&headers, at), Some(Duration::from_secs(60)));
///
/// headers.insert("retry-after", "-5".parse().unwrap());
/// assert_eq!(read_retry_after(&headers, at), None);
/// ```
#[must_use]
#[cfg_attr(docsrs, doc(cfg(feature = "client")))]
pub fn read_retry_after(headers: &HeaderMap, at: Timestamp) -> Option<Duration> {
    let present = Present::new(headers, at);
    let lines = headers.get_all(RETRY_AFTER).into_iter();
    let waits = lines.filter_map(|line| {
        let text = line.to_str().ok()?;
        match millionths(text) {
            Some(micros) => Some(Duration::from_micros(micros)),
            None => Some(present.until(present.translated(http_date(text)?))),
        }
    });
    waits.max()
}
