//! Shutdown of a store within a deadline.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::{Store, StoreFuture};
use crate::clock::Clock;
use crate::error::{Error, StoreError};

/// Shuts a store down. The future resolves after at most `deadline`, by this clock; then what the
/// store has sent is not taken back.
pub(crate) fn shutdown_within(
    store: &dyn Store,
    clock: &Arc<dyn Clock>,
    deadline: Duration,
) -> StoreFuture<(), Error> {
    let pending = match store.shutdown().try_ready() {
        Ok(done) => return StoreFuture::ready(done.map_err(Error::from)),
        Err(pending) => pending,
    };
    let expired = clock.sleep_until(clock.now().saturating_add(deadline));
    StoreFuture::pending(async move {
        match select(pending, expired).await {
            Either::Left((done, _)) => done.map_err(Error::from),
            Either::Right(_) => {
                let why = format!("the store was not shut down within {deadline:?}");
                Err(StoreError::new(why).into())
            }
        }
    })
}
