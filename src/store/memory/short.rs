//! The short ways: few checks, on small counters that are there. They are charged where they lie.

use super::MemoryStore;
use super::cell::{Small, Words};
use super::locked::{Pair, Tables as _};
use super::table::{Place, Table};
use super::weigh::{Charged, charge_words};
use crate::algorithm::fixed_window::FixedWindow;
use crate::algorithm::sliding_window::SlidingWindow;
use crate::algorithm::token_bucket::TokenBucket;
use crate::batch::Check;
use crate::clock::Timestamp;
use crate::decision::{Usage, Verdict};
use crate::quota::Algorithm;
use crate::store::fingerprint::Fingerprint;
use crate::sync::{MutexGuard, lock};

/// How many checks the short way is for.
pub(super) const FEW: usize = 4;

impl MemoryStore {
    /// The short way for several checks: few, of one or two subjects, all on small counters
    /// that are there. Says whether it was gone to its end; if not, nothing has happened.
    #[inline]
    pub(super) fn charge_known(
        &self,
        checks: &[Check<'_>],
        prints: &[Fingerprint; FEW],
        now: Timestamp,
        verdict: &mut Verdict,
    ) -> bool {
        let Some(mut pair) = Pair::lock(self, &prints[..checks.len().min(FEW)]) else {
            return false;
        };
        let now = pair.instant(now.as_micros());
        verdict.restart(Timestamp::again(now));
        // All are looked for before any is looked at: so the processor fetches them at once.
        let mut places = [Place::default(); FEW];
        let mut last = (Fingerprint::default(), Place::default());
        for (index, (check, print)) in checks.iter().zip(prints).enumerate() {
            let (table, tag) = (pair.table(index), print.tag(check.counter()));
            let found = if *print == last.0 {
                table.find_near(last.1, tag)
            } else {
                table.find(tag)
            };
            let Some(place) = found else {
                return false;
            };
            places[index] = place;
            last = (*print, place);
        }
        // Charges as it goes, and puts back what was there should a later check say no. The
        // locks are held, so nobody sees it.
        let mut before = [Words::default(); FEW];
        for (index, (check, place)) in checks.iter().zip(&places).enumerate() {
            let cell = pair.table(index).cell_mut(*place);
            before[index] = cell.words;
            let charged = charge_words(&mut cell.words, check, now);
            if let Charged::Granted(usage) = charged {
                *verdict.next() = usage;
                continue;
            }
            for (charged, words) in before[..index].iter().enumerate() {
                pair.table(charged).cell_mut(places[charged]).words = *words;
            }
            if let Charged::Unknown = charged {
                return false;
            }
            self.turn_away(&mut pair, checks, prints, verdict);
            return true;
        }
        if pair.owes_a_share() {
            self.sweep_due(&mut pair, checks.len());
        }
        true
    }

    /// The short way for most requests: one check, on a small counter that is there. If it is
    /// not, nothing has happened.
    #[inline(always)]
    pub(super) fn charge_known_one(
        &self,
        check: &Check<'_>,
        now: Timestamp,
    ) -> Result<(Usage, Timestamp), Fingerprint> {
        let print = self.secret.fingerprint(check.subject());
        let mut table = lock(&self.shards[self.shard_of(print)].0);
        let place = table.find(print.tag(check.counter())).ok_or(print)?;
        let now = table.instant(now.as_micros());
        let usage = match check.quota().algorithm() {
            Algorithm::TokenBucket => self.charge_there::<TokenBucket>(table, place, check, now),
            Algorithm::SlidingWindow => {
                self.charge_there::<SlidingWindow>(table, place, check, now)
            }
            // Those that count nothing are of this algorithm, too.
            Algorithm::FixedWindow => match Usage::without_counting(check.quota(), now) {
                None => self.charge_there::<FixedWindow>(table, place, check, now),
                uncounted => uncounted,
            },
            Algorithm::SlidingBuckets | Algorithm::SlidingLog => None,
        };
        let usage = usage.ok_or(print)?;
        Ok((usage, Timestamp::again(now)))
    }

    /// Charges a small counter, and gives the lock back before what is said is put together.
    /// `None` if it is not counted as the quota counts; then nothing has happened.
    #[inline(always)]
    fn charge_there<S: Small>(
        &self,
        mut table: MutexGuard<'_, Table>,
        place: Place,
        check: &Check<'_>,
        now: u64,
    ) -> Option<Usage> {
        let (quota, cost) = (check.quota(), check.cost());
        let cell = table.cell_mut(place);
        let state = S::read_plain(cell.words, quota)?;
        Some(match state.attempt(quota, now, cost) {
            Ok(after) => {
                let used = after.used(quota, now);
                if cost > 0 {
                    cell.words = after.write(quota, used);
                }
                self.release(table);
                after.granted(quota, now, used)
            }
            Err(at_now) => {
                let used = at_now.used(quota, now);
                cell.note_denial(used, quota.burst());
                self.release(table);
                at_now.refused(quota, now, cost, used)
            }
        })
    }

    /// Gives the lock back, and sweeps a little before that if it is due.
    #[inline(always)]
    fn release(&self, mut table: MutexGuard<'_, Table>) {
        if table.owes_a_share(1) {
            self.sweep_shares(&mut table);
        }
    }
}
