//! The instants that many responses in a row tell.

use std::cell::RefCell;

use http::HeaderValue;

use super::number::header_value;

thread_local! {
    /// The number that was told last and, once it was told twice, its value.
    static RECENT: RefCell<(u64, Option<HeaderValue>)> = const { RefCell::new((0, None)) };
}

/// A number as the value of a header, where the same number is likely to be told again next
/// time: counters of a fixed window end at the same instant. It is then not written anew.
///
/// Those of a token bucket do not, so nothing is kept of a number that came only once: to share
/// a value is to put it on the heap a second time.
#[inline]
pub(crate) fn recent_value(number: u64) -> HeaderValue {
    let known = RECENT.try_with(|recent| {
        let (known, value) = &mut *recent.try_borrow_mut().ok()?;
        if *known != number {
            (*known, *value) = (number, None);
            return None;
        }
        Some(value.get_or_insert_with(|| header_value(number)).clone())
    });
    match known {
        Ok(Some(value)) => value,
        // New, or asked for by a thread that is about to end.
        _ => header_value(number),
    }
}
