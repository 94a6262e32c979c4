//! Denials whose headers are known beforehand, put on in one go.
//!
//! To put a header into a map is to hash its name and to look for its place, and a denial has
//! nine of them: that was most of its cost. A map that has them all is copied as it is, and
//! then only values change.

use std::mem;
use std::sync::LazyLock;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response};

use super::Denial;
use super::finish::{NO_STORE, answer};
use super::render::dress;
use super::request_id::X_REQUEST_ID;
use crate::headers::legacy::{LIMIT, POLICY, REMAINING, RESET, Values};
use crate::headers::{HeaderSet, HeaderStyle, Report, header_value};

const NAMES: [HeaderName; 9] = [
    CONTENT_TYPE,
    CONTENT_LENGTH,
    CACHE_CONTROL,
    X_REQUEST_ID,
    RETRY_AFTER,
    LIMIT,
    REMAINING,
    RESET,
    POLICY,
];

/// A map with all these names; and in the order in which it is walked, which is which. A copy
/// is walked in the same order.
static PREPARED: LazyLock<(HeaderMap, Vec<usize>)> = LazyLock::new(|| {
    let nothing = HeaderValue::from_static("");
    let names = NAMES.into_iter();
    let headers: HeaderMap = names.map(|name| (name, nothing.clone())).collect();
    let place = |name: &HeaderName| NAMES.iter().position(|known| known == name);
    let places = headers.keys().filter_map(place).collect();
    (headers, places)
});

/// The whole response, with the headers of `style`.
pub(super) fn complete(
    denial: &Denial<'_>,
    style: HeaderStyle,
    kind: HeaderValue,
    body: Bytes,
) -> Response<Bytes> {
    match usual_headers(denial, style, &kind, body.len()) {
        Some(headers) => {
            let mut response = Response::new(body);
            *response.status_mut() = denial.status();
            *response.headers_mut() = headers;
            response
        }
        None => dress(answer(denial.status(), kind, body), denial, style),
    }
}

/// The headers, if they are those that denials usually have: of the legacy family, and with a
/// time to come back.
fn usual_headers(
    denial: &Denial<'_>,
    style: HeaderStyle,
    kind: &HeaderValue,
    length: usize,
) -> Option<HeaderMap> {
    if style.set() != HeaderSet::Legacy {
        return None;
    }
    let retry_after = denial.retry_after_secs()?;
    let report = Report::new(*denial.binding()?, denial.at());
    let legacy = Values::of(&report, style.reset());
    let mut values = [
        kind.clone(),
        header_value(length as u64),
        NO_STORE,
        denial.request_id().to_header_value()?,
        header_value(retry_after),
        legacy.limit,
        legacy.remaining,
        legacy.reset?,
        legacy.policy,
    ];
    let (prepared, places) = &*PREPARED;
    let mut headers = prepared.clone();
    for (value, place) in headers.values_mut().zip(places) {
        mem::swap(value, values.get_mut(*place)?);
    }
    Some(headers)
}
