//! What can be leased, and until when.
//!
//! A lease charges permits now that are spent later, so it must not matter to the counter when
//! within the lease they are spent. Then at every instant what is charged is at least what was
//! spent, and whatever is admitted would have been admitted by the algorithm itself: its bound
//! holds as it is.
//!
//! - A **fixed window** knows how much was charged in the running window, and not when: a lease
//!   lasts until the window ends.
//! - A **sliding window** knows that of two aligned windows, and fades out the older one by the
//!   time that has passed since it ended: again until the aligned window ends.
//! - **Sliding buckets** know how much was charged in each bucket: until the bucket ends.
//! - A **sliding log** knows the instant of each request. Permits that were charged at `t` are free
//!   again at `t + W`, though they may have been spent at `t + 1 s`: until `t + W + 1 s` there could
//!   be more than L in a window. No lease.
//! - A **token bucket** refills from the moment of the charge on. A full bucket that was leased and
//!   kept would be full again after W, and could be spent twice at once. No lease.

use std::time::Duration;

use crate::batch::Batch;
use crate::clock::Timestamp;
use crate::quota::{Algorithm, Quota};
use crate::usage::Usage;

/// Whether permits of all quotas of a batch can be taken ahead.
pub(super) fn can_be_leased(batch: &Batch<'_>) -> bool {
    let checks = batch.checks();
    !checks.is_empty() && checks.iter().all(|check| is_leasable(check.quota()))
}

fn is_leasable(quota: &Quota) -> bool {
    match quota.algorithm() {
        Algorithm::FixedWindow | Algorithm::SlidingWindow | Algorithm::SlidingBuckets => true,
        Algorithm::SlidingLog | Algorithm::TokenBucket => false,
    }
}

/// For how long permits of these quotas, charged at `at`, can be spent.
pub(super) fn span<'q>(
    quotas: impl Iterator<Item = &'q Quota>,
    usages: &[Usage],
    at: Timestamp,
    max_ttl: Duration,
) -> Duration {
    let ends = quotas.zip(usages).filter_map(|(quota, usage)| {
        let end = match quota.algorithm() {
            _ if quota.counts_nothing() => return None,
            Algorithm::SlidingBuckets => {
                let bucket = quota.bucket_micros();
                (at.as_micros() / bucket + 1) * bucket
            }
            // What is told to those who are admitted is when the window ends.
            _ => usage.reset_at().as_micros(),
        };
        Some(Duration::from_micros(end.saturating_sub(at.as_micros())))
    });
    ends.min().map_or(max_ttl, |end| end.min(max_ttl))
}
