//! Reads limits from responses: several header families, one [`Limits`].

mod counted;
mod limits;
mod number;
mod retry_after;
mod structured;
mod time;

use http::HeaderMap;

pub use self::limits::Limits;
pub use self::retry_after::read_retry_after;

/// A field with more bytes is ignored.
const MAX_BYTES: usize = 8 * 1024;

/// Members of a field that are read. A server with 8 KiB of members would otherwise cost 21 ms of CPU
/// per response, because each member is looked up among the policies.
const MAX_MEMBERS: usize = 32;

/// Returns the name of a limit if it is printable ASCII of at most 256 bytes.
fn policy_name(text: &str) -> Option<Box<str>> {
    const MAX: usize = 256;
    let text = text.trim();
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    (!text.is_empty() && text.len() <= MAX && is_plain).then(|| text.into())
}

/// Joins all lines of a field with commas, as proxies do. Returns `None` if it is not text or too
/// long.
fn joined(headers: &HeaderMap, name: &http::HeaderName) -> Option<String> {
    let mut whole = String::new();
    for line in headers.get_all(name) {
        if !whole.is_empty() {
            whole.push_str(", ");
        }
        whole.push_str(line.to_str().ok()?);
        if whole.len() > MAX_BYTES {
            return None;
        }
    }
    (!whole.is_empty()).then_some(whole)
}
