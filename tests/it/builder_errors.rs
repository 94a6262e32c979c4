//! Builders report all wrong settings together, each with its path.

use tollgate::{Algorithm, Limiter, Quota, Window};

use crate::support::error_paths;

#[test]
fn quota_builder_reports_all_wrong_settings_with_paths() {
    let errors = Quota::builder(0, Window::HOUR)
        .burst(5)
        .buckets(7)
        .build()
        .unwrap_err();
    assert_eq!(error_paths(&errors), ["limit", "burst", "buckets"]);
    let errors = Quota::builder(u64::MAX, Window::HOUR)
        .algorithm(Algorithm::TokenBucket)
        .burst(u64::MAX)
        .build()
        .unwrap_err();
    assert_eq!(error_paths(&errors), ["limit", "burst"]);
}

#[test]
fn limiter_builder_reports_all_wrong_settings_with_paths() {
    let builder = Limiter::builder().name("a b");
    let builder = builder.quota("5/fortnight").quota("0/hour").quota("5/hour");
    let errors = builder.build().unwrap_err();
    assert_eq!(error_paths(&errors), ["quota[0]", "quota[1]", "name"]);
}
