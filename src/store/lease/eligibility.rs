//! Which quotas can be leased, and for how long.
//!
//! A lease charges credits now that are spent later. That is exact only if the counter does not
//! depend on when, within the lease, they are spent. Then the charged amount is at every instant at
//! least the spent amount, so the algorithm would have admitted each request by itself, and its
//! bound holds.
//!
//! - **Fixed window**: the counter has one number for the window. Leased until the window ends.
//! - **Sliding window**: one number for each of two aligned windows, the older one weighted by the
//!   time since its end. Leased until the aligned window ends.
//! - **Sliding buckets**: one number for each bucket. Leased until the bucket ends.
//! - **Sliding log**: not leased. Credits that were charged at `t` are free again at `t + W`. If
//!   they are spent at `t + 1 s`, more than the limit fits into the window until `t + W + 1 s`.
//! - **Token bucket**: not leased. It refills from the instant of the charge on: a full bucket that
//!   is leased and kept is full again after W, and could be spent twice at once.

use std::time::Duration;

use crate::batch::Batch;
use crate::clock::Timestamp;
use crate::quota::{Algorithm, Quota};
use crate::usage::Usage;

/// Returns whether all quotas of a batch can be leased. A batch with dry runs cannot: their groups
/// are charged independently of the live group, so a block has no single outcome.
pub(super) fn can_be_leased(batch: &Batch<'_>) -> bool {
    let checks = batch.checks();
    !checks.is_empty()
        && batch.live_len() == checks.len()
        && checks.iter().all(|check| is_leasable(check.quota()))
}

fn is_leasable(quota: &Quota) -> bool {
    match quota.algorithm() {
        Algorithm::FixedWindow | Algorithm::SlidingWindow | Algorithm::SlidingBuckets => true,
        Algorithm::SlidingLog | Algorithm::TokenBucket => false,
    }
}

/// Returns for how long credits of these quotas, charged at `charged_at`, can be spent.
pub(super) fn time_to_live<'q>(
    quotas: impl Iterator<Item = &'q Quota>,
    usages: &[Usage],
    charged_at: Timestamp,
    max_ttl: Duration,
) -> Duration {
    let ends = quotas.zip(usages).filter_map(|(quota, usage)| {
        let end = match quota.algorithm() {
            _ if quota.counts_nothing() => return None,
            Algorithm::SlidingBuckets => {
                let bucket = quota.bucket_micros();
                (charged_at.as_micros() / bucket + 1) * bucket
            }
            // The reset of an allowed request is the end of the window.
            _ => usage.reset_at().as_micros(),
        };
        Some(Duration::from_micros(
            end.saturating_sub(charged_at.as_micros()),
        ))
    });
    ends.min().map_or(max_ttl, |end| end.min(max_ttl))
}
