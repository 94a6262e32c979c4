//! The contract of a [`Store`], as a suite that every store and decorator can be put through.
//!
//! Feature `test-util`. The suite drives the store with instants of its own, so a store that
//! goes by another clock needs a mode for tests in which it goes by the caller's.
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
//! A broken promise panics, with the promise's name and what was found instead.

#![expect(
    clippy::expect_used,
    reason = "a promise that is broken, or a store that fails, must fail the test that asks"
)]

mod all_or_nothing;
mod bench;
mod counting;
mod groups;
mod identity;
mod overrides;
mod upkeep;
mod vectors;

use std::sync::Arc;

use self::bench::Bench;
use super::Store;

/// Runs each promise on a fresh store.
macro_rules! promises {
    ($new_store:ident => $($room:ident :: $promise:ident;)*) => {$(
        $room::$promise(&Bench::new(stringify!($promise), $new_store().await)).await;
    )*};
}

/// Puts a store through the whole contract, [groups](verify_groups) included. `new_store` makes a
/// fresh, empty store each time it is called; the stores must not share counters.
pub async fn verify(new_store: impl AsyncFn() -> Arc<dyn Store>) {
    promises! {
        new_store =>
        counting::admits_exactly_the_limit;
        counting::tells_when_to_come_back_to_the_microsecond;
        counting::says_never_where_waiting_cannot_help;
        counting::charges_what_it_costs;
        counting::keeps_the_count_when_the_amount_changes;
        counting::stands_still_when_the_clock_goes_back;
        counting::admits_exactly_the_limit_to_a_crowd;
        all_or_nothing::allows_an_empty_batch;
        all_or_nothing::charges_every_check_of_a_batch;
        all_or_nothing::charges_nothing_when_one_check_is_denied;
        all_or_nothing::changes_nothing_when_peeked_at;
        all_or_nothing::records_what_has_happened;
        all_or_nothing::gives_back_what_was_charged;
        all_or_nothing::gives_nothing_back_into_another_window;
        all_or_nothing::never_gives_back_more_than_is_there;
        identity::keeps_subjects_apart;
        identity::keeps_counters_apart;
        identity::takes_a_rule_by_its_name;
        upkeep::resets_the_named_counters_only;
        upkeep::resets_a_whole_subject_and_no_other;
        upkeep::clears_everything;
        upkeep::counts_what_it_keeps;
        upkeep::answers_the_same_however_often_it_is_swept;
        overrides::keeps_the_overrides_that_were_set;
        overrides::replaces_an_override_by_one_for_the_same;
        overrides::forgets_an_override_when_it_is_over;
        overrides::removes_the_overrides_of_a_subject_under_a_rule;
        overrides::keeps_overrides_when_counters_are_forgotten;
    }
    for case in vectors::cases() {
        case.run(&Bench::new(&case.title(), new_store().await))
            .await;
    }
    verify_groups(new_store).await;
}

/// Puts a store through the promises about [groups](crate::Group) only. [`verify`] includes them.
pub async fn verify_groups(new_store: impl AsyncFn() -> Arc<dyn Store>) {
    promises! {
        new_store =>
        groups::charges_a_dry_run_with_an_admitted_request;
        groups::never_denies_by_a_dry_run;
        groups::charges_no_dry_run_with_a_denied_request;
        groups::charges_each_dry_run_whole_or_not_at_all;
        groups::takes_a_batch_of_three_full_groups;
        groups::peeks_records_and_refunds_all_groups;
    }
}
