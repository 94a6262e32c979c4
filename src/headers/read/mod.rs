//! What responses of others say about their limits: many families, one [`Limits`].

mod counted;
mod limits;
mod number;
mod retry_after;
mod structured;
mod time;

use http::HeaderMap;

pub use self::limits::Limits;
pub use self::retry_after::read_retry_after;

/// More than this of one field is not looked at: nobody has that many limits.
const MOST_BYTES: usize = 8 * 1024;

/// A name of a limit, if it is one that can be shown to people.
fn policy_name(text: &str) -> Option<Box<str>> {
    const MOST: usize = 256;
    let text = text.trim();
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    (!text.is_empty() && text.len() <= MOST && is_plain).then(|| text.into())
}

/// All lines of a field as one, the way proxies may join them. Nothing, if it is no text or
/// longer than anybody needs.
fn joined(headers: &HeaderMap, name: &http::HeaderName) -> Option<String> {
    let mut whole = String::new();
    for line in headers.get_all(name) {
        if !whole.is_empty() {
            whole.push_str(", ");
        }
        whole.push_str(line.to_str().ok()?);
        if whole.len() > MOST_BYTES {
            return None;
        }
    }
    (!whole.is_empty()).then_some(whole)
}
