//! `Retry-After`, in seconds or as a date.

use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;

use super::number::millionths;
use super::time::{Present, http_date};
use crate::clock::Timestamp;

/// How long to wait according to `Retry-After`, if the response came at `at`.
///
/// Seconds, also with a fraction, or a date in any of the three forms of HTTP. A date is
/// measured against the `Date` of the response where that differs from our clock by more than
/// two seconds. Of several lines the longest wait counts. What is neither is not there.
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
