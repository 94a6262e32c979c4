//! The numbers that many responses in a row tell.

use std::cell::RefCell;

use http::HeaderValue;

use super::number::{header_value, small_value};

/// So many numbers of a kind are known to each thread: the last of all those that end in the same
/// bits.
const PLACES: usize = 128;

/// What a number tells. Those of one kind are near each other, and would be in the way of those of
/// another.
#[derive(Clone, Copy)]
pub(crate) enum Told {
    /// How much is left.
    Amount,
    /// When something ends, or how long it takes.
    Time,
}

/// A number that was told and, once it was told twice, its value.
type Place = (u64, Option<HeaderValue>);

thread_local! {
    static RECENT: RefCell<[Place; 2 * PLACES]> =
        const { RefCell::new([const { (0, None) }; 2 * PLACES]) };
}

/// A number as the value of a header, where the same number is likely to be told again soon:
/// counters of a fixed window end at the same instant, and callers who come equally often have
/// equally much left. It is then not written anew.
///
/// Nothing is kept of a number that came only once: to share a value is to put it on the heap a
/// second time.
#[inline]
pub(crate) fn recent_value(told: Told, number: u64) -> HeaderValue {
    match small_value(number) {
        Some(value) => value,
        None => recent_large(told, number),
    }
}

#[inline]
fn recent_large(told: Told, number: u64) -> HeaderValue {
    let known = RECENT.try_with(|recent| {
        let places = &mut *recent.try_borrow_mut().ok()?;
        let place = usize::from(number.to_le_bytes()[0]) % PLACES;
        let (known, value) = &mut places[told as usize * PLACES + place];
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that share a place, others, and all of them again and again.
    #[test]
    fn a_value_is_always_that_of_its_number() {
        let near = |number: u64| [number, number + 1, number + PLACES as u64];
        let numbers = [
            0,
            9_998,
            10_000,
            1_730_332_800,
            u64::MAX - PLACES as u64 - 1,
        ];
        for _ in 0..3 {
            for number in numbers.into_iter().flat_map(near) {
                for told in [Told::Amount, Told::Time, Told::Time, Told::Amount] {
                    assert_eq!(recent_value(told, number), number.to_string());
                }
            }
        }
    }
}
