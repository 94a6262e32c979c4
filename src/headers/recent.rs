//! The instants that many responses in a row tell.

use std::cell::RefCell;

use http::HeaderValue;

use super::number::header_value;

thread_local! {
    static RECENT: RefCell<(u64, HeaderValue)> =
        const { RefCell::new((0, HeaderValue::from_static("0"))) };
}

/// A number as the value of a header, where the same number is likely to be told again next
/// time: most counters of a window end at the same instant. It is then not written anew.
#[inline]
pub(super) fn recent_value(number: u64) -> HeaderValue {
    let known = RECENT.try_with(|recent| {
        let (known, value) = &mut *recent.try_borrow_mut().ok()?;
        if *known != number {
            *known = number;
            *value = header_value(number);
        }
        Some(value.clone())
    });
    match known {
        Ok(Some(value)) => value,
        // A thread that is about to end.
        _ => header_value(number),
    }
}
