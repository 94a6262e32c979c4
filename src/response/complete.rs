//! Denials whose headers are known beforehand, put on in one go.
//!
//! To put a header into a map is to hash its name and to look for its place, and a denial has
//! nine of them: that was most of its cost. A map that has them all is copied as it is, and
//! then only values change.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response};

use super::Denial;
use super::finish::{NO_STORE, answer, with_headers};
use super::render::dress;
use super::request_id::X_REQUEST_ID;
use crate::headers::legacy::{LIMIT, POLICY, REMAINING, RESET, reset_number};
use crate::headers::{HeaderSet, HeaderStyle, Report, Told, header_value, recent_value};

/// The headers of denials whose documents are of one kind.
pub(super) struct Prepared {
    kind: HeaderValue,
    /// `None` if it would not be walked in the order in which it was filled.
    headers: Option<HeaderMap>,
}

const EACH_ITS_OWN: HeaderValue = HeaderValue::from_static("");
const NOTHING_LEFT: HeaderValue = HeaderValue::from_static("0");

impl Prepared {
    /// For documents with this content type.
    pub(super) fn new(kind: HeaderValue) -> Self {
        let filled: [(HeaderName, HeaderValue); 9] = [
            (CONTENT_LENGTH, EACH_ITS_OWN),
            (X_REQUEST_ID, EACH_ITS_OWN),
            (RETRY_AFTER, EACH_ITS_OWN),
            (LIMIT, EACH_ITS_OWN),
            (RESET, EACH_ITS_OWN),
            (POLICY, EACH_ITS_OWN),
            // From here on, they are the same in every denial.
            (CONTENT_TYPE, kind.clone()),
            (CACHE_CONTROL, NO_STORE),
            (REMAINING, NOTHING_LEFT),
        ];
        let headers: HeaderMap = filled.clone().into_iter().collect();
        let is_in_order = headers.keys().eq(filled.iter().map(|(name, _)| name));
        Self {
            kind,
            headers: is_in_order.then_some(headers),
        }
    }

    /// The whole response, with the headers of `style`.
    pub(super) fn complete(
        &self,
        denial: &Denial<'_>,
        style: HeaderStyle,
        body: Bytes,
    ) -> Response<Bytes> {
        let Some(headers) = self.usual_headers(denial, style, body.len()) else {
            let answer = answer(denial.status(), self.kind.clone(), body);
            return dress(answer, denial, style);
        };
        with_headers(denial.status(), headers, body)
    }

    /// The headers, if they are those that denials usually have: of the legacy family, and with a
    /// time to come back.
    fn usual_headers(
        &self,
        denial: &Denial<'_>,
        style: HeaderStyle,
        length: usize,
    ) -> Option<HeaderMap> {
        if style.set() != HeaderSet::Legacy {
            return None;
        }
        let report = Report::new(*denial.binding()?, denial.at());
        let request_id = denial.request_id().to_header_value()?;
        let retry_after = denial.retry_after_secs()?;
        let reset = reset_number(&report, style.reset())?;
        let mut headers = self.headers.clone()?;
        let mut places = headers.values_mut();
        let mut put = |value: HeaderValue| {
            if let Some(place) = places.next() {
                *place = value;
            }
        };
        put(header_value(length as u64));
        put(request_id);
        put(recent_value(Told::Time, retry_after));
        put(report.limit_value());
        put(recent_value(Told::Time, reset));
        put(report.policy_value());
        Some(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_way_is_taken() {
        let prepared = Prepared::new(HeaderValue::from_static("text/plain"));
        assert!(prepared.headers.is_some());
    }
}
