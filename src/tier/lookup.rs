//! One call of the user's closure, with a deadline. A panic of the closure is an error.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Either, select};

use super::FindTier;
use super::failure_log::FailureLog;
use crate::clock::Sleep;
use crate::identity_types::Identity;

/// Result of a look-up: a tier, no tier, or a failure that has been logged.
pub(super) type LookupResult = Result<Option<Arc<str>>, LookupFailed>;

#[derive(Clone, Copy, Debug)]
pub(super) struct LookupFailed;

/// Calls the closure at the first poll, and logs its failure.
pub(super) fn look_up(
    find: Arc<FindTier>,
    identity: Identity,
    deadline: Sleep,
    failures: Arc<FailureLog>,
) -> BoxFuture<'static, LookupResult> {
    let failed = Arc::clone(&failures);
    let lookup = async move {
        let found = match select(find(identity), deadline).await {
            Either::Left((found, _)) => found,
            Either::Right(_) => Err("the look-up took longer than its deadline".into()),
        };
        match found {
            Ok(tier) => {
                failures.succeeded();
                Ok(tier.filter(|name| !name.is_empty()).map(Arc::from))
            }
            Err(error) => {
                failures.failed(error);
                Err(LookupFailed)
            }
        }
    };
    // Unwind safe: a future that has panicked is not polled again.
    let caught = AssertUnwindSafe(lookup).catch_unwind();
    let result = caught.map(move |result| {
        result.unwrap_or_else(|_| {
            failed.failed("the look-up panicked");
            Err(LookupFailed)
        })
    });
    result.boxed()
}
