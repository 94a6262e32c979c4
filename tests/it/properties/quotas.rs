//! Random quotas of all kinds, with sizes close to boundaries.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Algorithm, Quota, Window};

fn algorithms() -> impl Strategy<Value = Algorithm> {
    prop::sample::select(vec![
        Algorithm::SlidingWindow,
        Algorithm::FixedWindow,
        Algorithm::SlidingBuckets,
        Algorithm::SlidingLog,
        Algorithm::TokenBucket,
    ])
}

/// Quotas of all kinds: most with small numbers, where every boundary is near, some with
/// numbers so large that time moves in ticks.
pub(super) fn quotas() -> impl Strategy<Value = Quota> {
    prop_oneof![
        3 => small_quotas(),
        1 => large_quotas(),
    ]
}

fn small_quotas() -> impl Strategy<Value = Quota> {
    quotas_of(1..=20_u64, windows())
}

/// Numbers at which products of amounts and times fill their registers, and at which time
/// moves in ticks of more than a microsecond, where the algorithm has ticks.
pub(super) fn large_quotas() -> impl Strategy<Value = Quota> {
    let round = vec!["1s", "90s", "1m", "1h", "1d", "7d", "1mo", "3653d"];
    let odd = vec!["1us", "7us", "997us", "1000003us", "3600000001us"];
    let windows = prop_oneof![3 => prop::sample::select(round), 1 => prop::sample::select(odd)];
    let windows = windows.prop_map(|text| {
        let quota: Quota = format!("1/{text}, fixed-window").parse().expect("valid");
        quota.window()
    });
    let amounts =
        (14..=44_u32, any::<u64>()).prop_map(|(bits, any)| (1 << bits) | (any % (1 << bits)));
    quotas_of(amounts, windows)
}

fn quotas_of(
    amounts: impl Strategy<Value = u64>,
    windows: impl Strategy<Value = Window>,
) -> impl Strategy<Value = Quota> {
    let burst = prop::option::of(1..=16_u64);
    let buckets = prop::option::of(prop::sample::select(vec![1, 2, 3, 7, 10, 64]));
    (algorithms(), amounts, windows, burst, buckets).prop_map(
        |(algorithm, mut amount, window, burst, buckets)| loop {
            if algorithm == Algorithm::SlidingWindow {
                // Its counters end at 2^32: room for debts of thrice the limit, and twice the
                // amount.
                amount = amount.min(1 << 29);
            }
            let mut builder = Quota::builder(amount, window).algorithm(algorithm);
            match (algorithm, burst, buckets) {
                (Algorithm::TokenBucket, Some(eighths), _) => {
                    builder = builder.burst((amount * eighths / 8).max(1));
                }
                (Algorithm::SlidingBuckets, _, Some(buckets)) => builder = builder.buckets(buckets),
                _ => {}
            }
            match builder.build() {
                Ok(quota) => return quota,
                // Too large for this algorithm and window: use a smaller amount. A burst
                // of one permit that takes twenty years to refill becomes one of ten.
                Err(_) if amount > 1 => amount /= 2,
                Err(_) => {
                    return Quota::builder(1, window)
                        .algorithm(algorithm)
                        .build()
                        .expect("valid");
                }
            }
        },
    )
}

fn windows() -> impl Strategy<Value = Window> {
    const SECOND: u64 = 1_000_000;
    const DAY: u64 = 86_400 * SECOND;
    let spans = prop_oneof![
        1..=12_u64,
        prop::sample::select(vec![
            997,
            1_000,
            1_000_003,
            SECOND,
            61 * SECOND - 1,
            60 * SECOND,
            3_600 * SECOND,
            DAY,
            7 * DAY,
            3_653 * DAY,
        ]),
        13..=10 * DAY,
    ];
    let spans = spans.prop_map(|micros| Window::new(Duration::from_micros(micros)));
    let months = prop::sample::select(vec![1, 2, 3, 12]).prop_map(Window::months);
    prop_oneof![6 => spans, 1 => months].prop_map(|window| window.expect("a valid window"))
}

/// The quota, followed by copies with other amounts that are counted in the same tick.
pub(super) fn tiers(quota: &Quota) -> Vec<Quota> {
    let others = [(1, 3), (1, 2), (2, 1)].map(|(times, over)| {
        let amount = (quota.amount() * times / over).max(1);
        let other = quota.with_amount(amount).ok();
        let same_tick = other.filter(|other| other.tick() == quota.tick());
        same_tick.unwrap_or(*quota)
    });
    std::iter::once(*quota).chain(others).collect()
}
