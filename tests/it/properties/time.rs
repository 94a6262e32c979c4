//! Instants and windows: whole microseconds, nothing lost and nothing wrapped.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Algorithm, Quota, Timestamp, Window};

use super::config;
use super::counters::{Counts, Plain};
use crate::reference::Reference;

const MAX: u64 = Timestamp::MAX.as_micros();
const TEN_YEARS: Duration = Duration::from_hours(3_653 * 24);

proptest! {
    #![proptest_config(config(5_000))]

    #[test]
    fn instants_add_and_subtract(micros in instants(), length in durations()) {
        let instant = Timestamp::from_micros(micros);
        prop_assert_eq!(instant.as_micros(), micros.min(MAX));
        let later = instant.saturating_add(length);
        let exact = u128::from(instant.as_micros()) + length.as_nanos().div_ceil(1_000);
        prop_assert_eq!(u128::from(later.as_micros()), exact.min(u128::from(MAX)));
        prop_assert_eq!(instant.duration_since(later), Duration::ZERO);
        let between = Duration::from_micros(later.as_micros() - instant.as_micros());
        prop_assert_eq!(later.duration_since(instant), between);
        prop_assert_eq!(later >= instant, true);
    }

    #[test]
    fn seconds_are_rounded_up(micros in instants()) {
        let instant = Timestamp::from_micros(micros);
        let secs = instant.as_secs_rounded_up();
        prop_assert!(secs * 1_000_000 >= instant.as_micros());
        prop_assert!(secs * 1_000_000 - instant.as_micros() < 1_000_000);
        prop_assert_eq!(Timestamp::from_secs(micros), Timestamp::from_micros(micros.saturating_mul(1_000_000)));
    }

    #[test]
    fn window_keeps_its_length_or_is_rejected(length in durations()) {
        let whole = length.as_nanos().is_multiple_of(1_000);
        let in_range = length.as_nanos() > 0 && length <= TEN_YEARS;
        match Window::new(length) {
            Ok(window) => {
                prop_assert!(whole && in_range);
                prop_assert_eq!(window.duration(), length);
                let text = format!("1/{window}, fixed-window");
                let read = text.parse::<Quota>().map(|quota| quota.window());
                prop_assert_eq!(read, Ok(window), "{}", text);
            }
            Err(refused) => {
                prop_assert!(!(whole && in_range));
                prop_assert_eq!(refused.value(), format!("{length:?}"));
            }
        }
    }

    /// Compares calendar months until 2219 with another calendar implementation.
    #[test]
    fn month_windows_end_with_the_calendar_month(micros in 0..=MAX, months in 1..=120_u32) {
        let window = Window::months(months).expect("at most 120");
        let quota = Quota::builder(1, window).algorithm(Algorithm::FixedWindow);
        let quota = quota.build().expect("a valid quota");
        let result = Plain::new(&quota).decide(&quota, micros, 1);
        prop_assert_eq!(result, Reference::default().decide(&quota, micros, 1));
        let last = Plain::new(&quota).decide(&quota, result.reset_at.min(MAX + 1) - 1, 1);
        prop_assert_eq!(last.reset_at, result.reset_at);
    }
}

fn instants() -> impl Strategy<Value = u64> {
    prop_oneof![0..=3_u64, MAX - 3..=MAX + 3, 0..=MAX, any::<u64>()]
}

fn durations() -> impl Strategy<Value = Duration> {
    let nanos = prop_oneof![0..=5_000_u64, any::<u64>()].prop_map(Duration::from_nanos);
    let micros = (0..=1_u64 << 49).prop_map(Duration::from_micros);
    let any = (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(s, n)| Duration::new(s, n));
    let edges = prop::sample::select(vec![
        Duration::ZERO,
        Duration::MAX,
        TEN_YEARS,
        TEN_YEARS + Duration::from_nanos(1),
        TEN_YEARS + Duration::from_micros(1),
        TEN_YEARS.saturating_sub(Duration::from_nanos(1)),
    ]);
    prop_oneof![nanos, micros, any, edges]
}
