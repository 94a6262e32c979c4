//! Id of a request in responses and logs: [`RequestId`].

use std::hash::{BuildHasher, RandomState};

use http::{HeaderMap, HeaderName, HeaderValue};

pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
static REQUEST_ID: HeaderName = X_REQUEST_ID;
static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Id of a request: received, taken from its trace, or new.
///
/// 1. The `x-request-id` of the request, if there is exactly one and it has 1 to 128 of the
///    characters `A–Z a–z 0–9 . _ : / + = @ -`. (The request id layer of tower-http sets it.)
/// 2. The trace id of a valid W3C `traceparent`.
/// 3. `req_` and 16 random hexadecimal digits.
///
/// ```
/// use http::Request;
/// use tollgate::response::RequestId;
///
/// let named = Request::get("/").header("x-request-id", "order-4711").body(()).unwrap();
/// assert_eq!(RequestId::of(named.headers()).as_str(), "order-4711");
///
/// let hostile = Request::get("/").header("x-request-id", "<script>").body(()).unwrap();
/// assert!(RequestId::of(hostile.headers()).as_str().starts_with("req_"));
/// ```
#[derive(Clone, Debug)]
pub struct RequestId<'a>(RequestIdSource<'a>);

#[derive(Clone, Debug)]
enum RequestIdSource<'a> {
    /// The header value and its text.
    Incoming(&'a HeaderValue, &'a str),
    Text(&'a str),
    New([u8; NEW]),
}

const PREFIX: &str = "req_";
const NEW: usize = PREFIX.len() + 16;
const MAX_LEN: usize = 128;

impl<'a> RequestId<'a> {
    /// Returns the id of the request with these headers.
    #[must_use]
    pub fn of(headers: &'a HeaderMap) -> Self {
        if !may_have_one(headers) {
            return Self::random();
        }
        incoming(headers)
            .or_else(|| trace_id(headers))
            .unwrap_or_else(Self::random)
    }

    /// Creates a new id that cannot be predicted.
    #[must_use]
    pub fn random() -> Self {
        // Each `RandomState` has other keys, which are random and never leave the process.
        let number = RandomState::new().hash_one(0_u8);
        let mut name = *b"req_0000000000000000";
        // `write!` takes 300 instructions more.
        for (at, byte) in name.iter_mut().skip(PREFIX.len()).enumerate() {
            let digit = char::from_digit((number >> (4 * at) & 0xf) as u32, 16);
            *byte = digit.map_or(b'0', |digit| digit as u8);
        }
        Self(RequestIdSource::New(name))
    }

    /// Creates an id from a text. Returns `None` if it would not be accepted in a request.
    #[must_use]
    pub fn from_text(text: &'a str) -> Option<Self> {
        is_plain(text.as_bytes()).then_some(Self(RequestIdSource::Text(text)))
    }

    /// Returns the text of the id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            RequestIdSource::Incoming(_, text) | RequestIdSource::Text(text) => text,
            // ASCII only.
            RequestIdSource::New(name) => str::from_utf8(name).unwrap_or_default(),
        }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            RequestIdSource::Incoming(_, text) | RequestIdSource::Text(text) => text.as_bytes(),
            RequestIdSource::New(name) => name,
        }
    }

    pub(super) fn to_header_value(&self) -> Option<HeaderValue> {
        match &self.0 {
            RequestIdSource::Incoming(value, _) => Some((*value).clone()),
            _ => HeaderValue::from_bytes(self.as_bytes()).ok(),
        }
    }
}

/// Returns whether a header with an id can be present. Comparing the names of up to 16 headers is
/// cheaper than two look-ups.
fn may_have_one(headers: &HeaderMap) -> bool {
    const FEW: usize = 16;
    headers.len() > FEW
        || headers
            .keys()
            .any(|name| *name == REQUEST_ID || *name == TRACEPARENT)
}

fn incoming(headers: &HeaderMap) -> Option<RequestId<'_>> {
    let value = single_value(headers, &REQUEST_ID)?;
    if !is_plain(value.as_bytes()) {
        return None;
    }
    let text = value.to_str().ok()?;
    Some(RequestId(RequestIdSource::Incoming(value, text)))
}

/// Returns the value of a header that occurs once. Of two values, the next hop may use either.
fn single_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let first = headers.get(name)?;
    let single = headers.get_all(name).iter().nth(1).is_none();
    single.then_some(first)
}

/// Returns whether the text is safe in headers, logs, JSON and shells.
fn is_plain(name: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:/+=@-".contains(byte);
    !name.is_empty() && name.len() <= MAX_LEN && name.iter().all(plain)
}

/// `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`
fn trace_id(headers: &HeaderMap) -> Option<RequestId<'_>> {
    let text = single_value(headers, &TRACEPARENT)?.to_str().ok()?;
    let hex = |part: &str, length| {
        let digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        part.len() == length && part.bytes().all(digit)
    };
    let zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    let mut parts = text.split('-');
    let (version, trace) = (parts.next()?, parts.next()?);
    let (parent, flags) = (parts.next()?, parts.next()?);
    let known = hex(version, 2) && version != "ff" && hex(flags, 2);
    // Later versions may have more parts.
    let complete = version != "00" || parts.next().is_none();
    let valid = hex(trace, 32) && !zero(trace) && hex(parent, 16) && !zero(parent);
    (known && complete && valid).then_some(RequestId(RequestIdSource::Text(trace)))
}
