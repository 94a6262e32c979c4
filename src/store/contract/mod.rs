//! Contract suite for a [`Store`]: the properties that every store and decorator has.
//!
//! Feature `test-util`. The suite passes its own instants, so a store that uses another clock needs a
//! test mode in which it uses the caller's.
//!
//! ```
//! use std::sync::Arc;
//! use tollgate::store::contract;
//! use tollgate::{MemoryStore, Store};
//!
//! # let runtime = tokio::runtime::Runtime::new().unwrap();
//! # runtime.block_on(async {
//! contract::verify(async || Arc::new(MemoryStore::new()) as Arc<dyn Store>).await;
//! # });
//! ```
//!
//! A violation panics with the name of the property and what was found instead.

#![expect(
    clippy::expect_used,
    reason = "a violation or a failing store must fail the test that called"
)]

mod all_or_nothing;
mod counting;
mod groups;
mod harness;
mod identity;
mod overrides;
mod upkeep;
mod vectors;

use std::sync::Arc;

use self::harness::Harness;
use super::Store;

/// Checks each property on a new store.
macro_rules! run {
    ($new_store:ident => $($module:ident :: $property:ident;)*) => {$(
        $module::$property(&Harness::new(stringify!($property), $new_store().await)).await;
    )*};
}

/// Checks all properties of a store, including those of [groups](verify_groups). `new_store` returns a
/// new, empty store for each property; these stores must not share counters.
pub async fn verify(new_store: impl AsyncFn() -> Arc<dyn Store>) {
    run! {
        new_store =>
        counting::admits_exactly_the_limit;
        counting::retry_after_is_exact_to_the_microsecond;
        counting::reports_a_cost_that_exceeds_the_capacity;
        counting::charges_the_cost;
        counting::keeps_usage_when_the_limit_changes;
        counting::time_never_goes_back;
        counting::admits_exactly_the_limit_to_concurrent_callers;
        all_or_nothing::allows_an_empty_batch;
        all_or_nothing::charges_every_check_of_a_batch;
        all_or_nothing::charges_nothing_when_one_check_is_denied;
        all_or_nothing::peek_changes_nothing;
        all_or_nothing::record_charges_beyond_the_limit;
        all_or_nothing::refund_takes_back_the_charge;
        all_or_nothing::refund_never_affects_another_window;
        all_or_nothing::refund_never_goes_below_zero;
        identity::keeps_subjects_apart;
        identity::keeps_counters_apart;
        identity::identifies_a_rule_by_its_name;
        upkeep::resets_the_named_counters_only;
        upkeep::resets_a_whole_subject_and_no_other;
        upkeep::clears_everything;
        upkeep::len_counts_the_counters;
        upkeep::sweeping_changes_no_decision;
        upkeep::shutdown_leaves_what_was_admitted;
        overrides::keeps_the_overrides_that_were_set;
        overrides::replaces_an_override_of_the_same_subject_and_rule;
        overrides::removes_expired_overrides;
        overrides::removes_the_overrides_of_a_subject_under_a_rule;
        overrides::reset_and_clear_keep_overrides;
    }
    for case in vectors::cases() {
        case.run(&Harness::new(&case.title(), new_store().await))
            .await;
    }
    verify_groups(new_store).await;
}

/// Checks only the properties of [groups](crate::Group). [`verify`] includes them.
pub async fn verify_groups(new_store: impl AsyncFn() -> Arc<dyn Store>) {
    run! {
        new_store =>
        groups::charges_a_dry_run_with_an_admitted_request;
        groups::never_denies_by_a_dry_run;
        groups::charges_no_dry_run_with_a_denied_request;
        groups::charges_each_dry_run_whole_or_not_at_all;
        groups::takes_a_batch_of_three_full_groups;
        groups::peeks_records_and_refunds_all_groups;
    }
}
