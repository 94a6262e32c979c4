//! The last denial of recently denied callers: [`RecentDenials`].

use std::time::Duration;

use crate::clock::Timestamp;
use crate::hashed::ByHash;

/// The last denial of the latest callers. A look-up by name has no token, so it uses the tier of the last
/// denial.
///
/// Two generations of fixed size. A denied caller moves to the current one. When that is full, it
/// becomes the previous one, which is dropped. The latest [`GENERATION`](Self::GENERATION) callers
/// are therefore always known, whatever the number of callers. Each step is O(1), amortised: a rotation
/// drops the up to 2,048 entries of the previous generation under the lock.
#[derive(Debug, Default)]
pub(super) struct RecentDenials {
    current: ByHash<RecentDenial>,
    previous: ByHash<RecentDenial>,
}

/// The last denial of one caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecentDenial {
    /// The tier that its identity named; `None` if it named none.
    pub(crate) tier: Option<Box<str>>,
    /// The id of the counter that denied it.
    pub(crate) counter: u64,
    /// The first of a row of denials by this counter: each came before the wait of the one before was
    /// over. Requests of lower cost may have been admitted in between.
    pub(crate) since: Timestamp,
    /// When a retry can succeed; `None` if never.
    pub(crate) until: Option<Timestamp>,
    seen_at: Timestamp,
}

impl RecentDenial {
    /// Returns the first of a row of denials by a counter; `None` if another counter was the last to deny
    /// the caller, or if the wait is over.
    pub(crate) fn denied_since(&self, counter: u64, now: Timestamp) -> Option<Timestamp> {
        (self.counter == counter && self.lasts_at(now)).then_some(self.since)
    }

    /// Returns whether a denial by `counter` at `now` continues this one. A denial without an end
    /// lasts until it expires.
    fn is_continued_by(&self, counter: u64, now: Timestamp) -> bool {
        self.counter == counter && self.lasts_at(now) && self.is_known_at(now)
    }

    fn lasts_at(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    fn is_known_at(&self, now: Timestamp) -> bool {
        now.duration_since(self.seen_at) < RecentDenials::EXPIRY
    }
}

/// A denial to add.
pub(in crate::observe) struct NewDenial<'a> {
    pub(in crate::observe) tier: Option<&'a str>,
    pub(in crate::observe) counter: u64,
    pub(in crate::observe) until: Option<Timestamp>,
    pub(in crate::observe) now: Timestamp,
}

impl RecentDenials {
    /// Callers of a generation.
    pub(super) const GENERATION: usize = 2_048;

    /// A denial is forgotten after this time: the tier of the caller may have changed.
    const EXPIRY: Duration = Duration::from_hours(1);

    pub(super) fn add(&mut self, caller: u64, denial: &NewDenial<'_>) {
        let NewDenial {
            tier,
            counter,
            until,
            now,
        } = *denial;
        if let Some(known) = self.current.get_mut(&caller) {
            if !known.is_continued_by(counter, now) {
                known.since = now;
            }
            if known.tier.as_deref() != tier {
                known.tier = tier.map(Into::into);
            }
            (known.counter, known.until, known.seen_at) = (counter, until, now);
            return;
        }
        let known = self.previous.remove(&caller);
        let known = known.filter(|known| known.is_continued_by(counter, now));
        if self.current.len() >= Self::GENERATION {
            self.previous = std::mem::take(&mut self.current);
        }
        let since = known.map_or(now, |known| known.since);
        let tier = tier.map(Into::into);
        self.current.insert(
            caller,
            RecentDenial {
                tier,
                counter,
                since,
                until,
                seen_at: now,
            },
        );
    }

    /// Ends the denial of a caller by one of these counters, which an operator has changed. Keeps its tier.
    pub(super) fn end(&mut self, caller: u64, counters: &[u64], now: Timestamp) {
        for known in [&mut self.current, &mut self.previous] {
            let known = known.get_mut(&caller);
            if let Some(known) = known.filter(|known| counters.contains(&known.counter)) {
                known.until = Some(now);
            }
        }
    }

    /// Returns the last denial of a caller within an hour.
    pub(super) fn get(&self, caller: u64, now: Timestamp) -> Option<&RecentDenial> {
        let known = self.current.get(&caller);
        let known = known.or_else(|| self.previous.get(&caller));
        known.filter(|known| known.is_known_at(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(1_735_689_600 + secs)
    }

    fn denial(tier: Option<&str>, until: u64, now: u64) -> NewDenial<'_> {
        NewDenial {
            tier,
            counter: 9,
            until: Some(at(until)),
            now: at(now),
        }
    }

    #[test]
    fn denial_lasts_from_the_first_one_until_the_wait_is_over() {
        let mut recent = RecentDenials::default();
        let since = |recent: &RecentDenials, counter, now| {
            let known = recent.get(1, at(now))?;
            known.denied_since(counter, at(now))
        };
        recent.add(1, &denial(None, 60, 0));
        recent.add(1, &denial(None, 90, 30));
        assert_eq!(since(&recent, 9, 89), Some(at(0)));
        assert_eq!(since(&recent, 8, 89), None, "another counter");
        assert_eq!(since(&recent, 9, 90), None, "the wait is over");
        recent.add(1, &denial(None, 200, 100));
        assert_eq!(since(&recent, 9, 101), Some(at(100)));
        recent.end(1, &[8], at(109));
        assert_eq!(
            since(&recent, 9, 109),
            Some(at(100)),
            "another counter was reset"
        );
        recent.end(1, &[8, 9], at(110));
        assert_eq!(since(&recent, 9, 110), None, "an operator has reset it");
        recent.add(1, &denial(None, 200, 111));
        assert_eq!(since(&recent, 9, 112), Some(at(111)));
    }

    #[test]
    fn denial_without_an_end_begins_anew_after_it_expired() {
        let blocked = |now| NewDenial {
            until: None,
            ..denial(None, 0, now)
        };
        let mut recent = RecentDenials::default();
        let since = |recent: &RecentDenials, now| recent.get(1, at(now)).unwrap().since;
        recent.add(1, &blocked(0));
        recent.add(1, &blocked(3_599));
        assert_eq!(since(&recent, 3_599), at(0));
        recent.add(1, &blocked(3_599 + 3_600));
        assert_eq!(since(&recent, 7_199), at(7_199));
        recent.previous = std::mem::take(&mut recent.current);
        recent.add(1, &blocked(7_199 + 3_600));
        assert_eq!(
            since(&recent, 10_799),
            at(10_799),
            "of the previous generation"
        );
    }

    #[test]
    fn tier_is_that_of_the_last_denial_and_expires() {
        let mut recent = RecentDenials::default();
        for tier in [Some("free"), Some("team"), None] {
            recent.add(1, &denial(tier, 60, 0));
            let known = recent.get(1, at(3_599)).unwrap();
            assert_eq!(known.tier.as_deref(), tier);
        }
        assert_eq!(recent.get(1, at(3_600)), None);
        assert_eq!(recent.get(2, at(0)), None);
    }

    #[test]
    fn latest_callers_are_known_and_memory_is_bounded() {
        let mut recent = RecentDenials::default();
        let many = 10 * RecentDenials::GENERATION as u64;
        for caller in 0..many {
            // One caller that is denied throughout.
            recent.add(u64::MAX, &denial(Some("team"), 60, 0));
            recent.add(caller, &denial(None, 60, 0));
            assert!(recent.current.len() <= RecentDenials::GENERATION);
            assert!(recent.previous.len() <= RecentDenials::GENERATION);
        }
        assert_eq!(recent.get(0, at(0)), None);
        let latest = many - RecentDenials::GENERATION as u64 + 1..many;
        assert!(
            latest
                .clone()
                .all(|caller| recent.get(caller, at(0)).is_some())
        );
        let steady = recent.get(u64::MAX, at(0)).unwrap();
        assert_eq!(steady.tier.as_deref(), Some("team"));
    }
}
