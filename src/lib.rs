//! draft
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod algorithm;
mod batch;
mod clock;
mod decision;
pub mod docs;
mod error;
mod key;
mod limiter;
mod quota;
pub mod store;
mod sync;

pub use self::batch::{Batch, Check, MAX_CHECKS};
pub use self::clock::{Clock, ManualClock, Sleep, SystemClock, Timestamp};
pub use self::decision::{Decision, Outcome, Usage, Verdict};
pub use self::error::{Error, Invalid, StoreError};
pub use self::key::{Counter, MAX_DIMENSIONS, Subject, Value};
pub use self::limiter::{Ask, IntoQuota, Limiter, LimiterBuilder};
pub use self::quota::{Algorithm, Quota, QuotaBuilder, Window};
pub use self::store::{Answer, MemoryStore, MemoryStoreBuilder, Store};
