//! The short way: one check, on a small counter that is there. It is charged where it lies.

use std::net::IpAddr;

use super::MemoryStore;
use super::cell::Small;
use super::table::Table;
use crate::algorithm::fixed_window::FixedWindow;
use crate::algorithm::sliding_window::SlidingWindow;
use crate::algorithm::token_bucket::TokenBucket;
use crate::batch::Check;
use crate::clock::Timestamp;
use crate::decision::Usage;
use crate::key::Counter;
use crate::quota::{Algorithm, Quota};
use crate::store::fingerprint::{Fingerprint, Tag};
use crate::sync::{MutexGuard, lock};

impl MemoryStore {
    /// The short way for most requests: one check, on a small counter that is there. If it is
    /// not, nothing has happened.
    #[inline(always)]
    pub(super) fn charge_known_one(
        &self,
        check: &Check<'_>,
        now: Timestamp,
    ) -> Result<(Usage, Timestamp), Fingerprint> {
        let print = self.secret.fingerprint(check.subject());
        let charge = (check.counter(), check.quota(), check.cost());
        self.charge_print(print, charge, now).ok_or(print)
    }

    /// The same for a text: how much is charged to which counter, by which of its quotas.
    #[inline(always)]
    pub(crate) fn charge_text(
        &self,
        text: &str,
        charge: (&Counter, &Quota, u64),
        now: Timestamp,
    ) -> Option<(Usage, Timestamp)> {
        self.charge_print(self.secret.fingerprint_of_text(text), charge, now)
    }

    /// The same for an address. The name has less than eight bytes.
    #[inline(always)]
    pub(crate) fn charge_address(
        &self,
        name: &str,
        address: IpAddr,
        charge: (&Counter, &Quota, u64),
        now: Timestamp,
    ) -> Option<(Usage, Timestamp)> {
        let print = self.secret.fingerprint_of_address(name, address);
        self.charge_print(print, charge, now)
    }

    #[inline(always)]
    fn charge_print(
        &self,
        print: Fingerprint,
        (counter, quota, cost): (&Counter, &Quota, u64),
        now: Timestamp,
    ) -> Option<(Usage, Timestamp)> {
        let table = lock(&self.shards[self.shard_of(print)].0);
        let (tag, charge) = (print.tag(counter), (quota, cost, now.as_micros()));
        match quota.algorithm() {
            Algorithm::TokenBucket => self.charge_there::<TokenBucket>(table, tag, charge),
            Algorithm::SlidingWindow => self.charge_there::<SlidingWindow>(table, tag, charge),
            // Those that count nothing are of this algorithm, too.
            Algorithm::FixedWindow if quota.counts_nothing() => {
                let now = table.latest.max(now.as_micros());
                Some((Usage::without_counting(quota, now)?, Timestamp::again(now)))
            }
            // Calendar windows need the wall clock.
            Algorithm::FixedWindow if quota.is_calendar() => None,
            Algorithm::FixedWindow => self.charge_there::<FixedWindow>(table, tag, charge),
            Algorithm::SlidingBuckets | Algorithm::SlidingLog => None,
        }
    }

    /// Charges a small counter, and gives the lock back before what is said is put together.
    /// `None` if it is not there, or not counted as the quota counts; then nothing has happened.
    #[inline(always)]
    fn charge_there<S: Small>(
        &self,
        mut table: MutexGuard<'_, Table>,
        tag: Tag,
        (quota, cost, now): (&Quota, u64, u64),
    ) -> Option<(Usage, Timestamp)> {
        let now = table.instant(now);
        let is_due = table.owes_a_share(1);
        let cell = table.find_cell(tag)?;
        let state = S::read_plain(cell.words, quota)?;
        let usage = match state.attempt(quota, now, cost) {
            Ok((after, weight)) => {
                if cost > 0 {
                    cell.words = after.rewrite(cell.words, weight, quota);
                }
                self.release(table, is_due);
                after.granted(quota, now, S::used_of(weight, quota))
            }
            Err(at_now) => {
                let used = at_now.used(quota, now);
                cell.note_denial(used, quota.burst());
                self.release(table, is_due);
                at_now.refused(quota, now, cost, used)
            }
        };
        Some((usage, Timestamp::again(now)))
    }

    /// Gives the lock back, and sweeps a little before that if it is due.
    #[inline(always)]
    fn release(&self, mut table: MutexGuard<'_, Table>, is_due: bool) {
        if is_due {
            self.sweep_shares(&mut table);
        }
    }
}
