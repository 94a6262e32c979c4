//! Without eviction, a memory store is a map from subjects and counters to states.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use tollgate::algorithm::State;
use tollgate::{
    Batch, Check, Counter, MemoryStore, Store, StoreFuture, Subject, Timestamp, Usage, Usages,
};

use super::config;
use super::stores::{QUOTAS, counters, gaps, len, merged, store};
use super::traces::NEW_YEAR;
use crate::support::store_ext::StoreExt as _;

const SUBJECTS: u64 = 24;

/// Subject, counter and cost of a check.
type Asked = (u64, usize, u64);

#[derive(Clone, Debug)]
enum Act {
    Decide(Vec<Asked>),
    Peek(Vec<Asked>),
    Record(Vec<Asked>),
    /// Takes back the last charge.
    Refund,
    Reset(u64, usize),
    ResetSubject(u64),
    Sweep,
    Clear,
}

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn a_store_is_a_map_of_states(
        acts in vec((acts(), gaps()), 1..120),
        shards in 0..3_u32,
        keys in any::<(u64, u64)>(),
    ) {
        let capacity = 2 * usize::try_from(SUBJECTS).expect("few") * QUOTAS.len();
        let store = store(capacity, 1 << shards, keys);
        let mut map = Map::new();
        let mut now = NEW_YEAR;
        for (act, gap) in &acts {
            now += gap;
            map.keeps_up(&store, act, Timestamp::from_micros(now))?;
        }
        prop_assert_eq!((store.evicted(), store.overflowed()), (0, 0));
        let swept = store.sweep(Timestamp::from_micros(now + 10_000_000)).wait();
        prop_assert!(swept.is_ok_and(|count| count <= map.states.len()));
        prop_assert_eq!(len(&store), 0, "everything has expired");
    }
}

/// Model of the store: one state for each subject and counter that was charged.
struct Map {
    counters: Vec<Counter>,
    states: HashMap<(u64, usize), State>,
    last: Option<(Vec<Asked>, Timestamp)>,
}

impl Map {
    fn new() -> Self {
        Self {
            counters: counters(),
            states: HashMap::new(),
            last: None,
        }
    }

    fn keeps_up(&mut self, store: &MemoryStore, act: &Act, now: Timestamp) -> TestCaseResult {
        match act {
            Act::Decide(checks) => self.decide(store, merged(checks), now)?,
            Act::Peek(checks) => {
                let checks = merged(checks);
                let verdict = self.ask(&checks, |batch| store.peek(batch, now));
                self.agree(&verdict, &checks, false)?;
            }
            Act::Record(checks) => {
                let checks = merged(checks);
                let verdict = self.ask(&checks, |batch| store.record(batch, now));
                self.charge(&checks, now);
                let nothing_more: Vec<Asked> =
                    checks.iter().map(|asked| (asked.0, asked.1, 0)).collect();
                self.agree(&verdict, &nothing_more, true)?;
            }
            Act::Refund => self.refund(store, now),
            Act::Reset(subject, counter) => {
                self.ask(&[(*subject, *counter, 1)], |batch| store.reset(batch));
                self.states.remove(&(*subject, *counter));
            }
            Act::ResetSubject(subject) => {
                let done = store.reset_subject(&Subject::from(*subject)).wait();
                done.expect("memory answers");
                self.states.retain(|(other, _), _| other != subject);
            }
            Act::Sweep => {
                store.sweep(now).wait().expect("memory answers");
            }
            Act::Clear => {
                store.clear().wait().expect("memory answers");
                self.states.clear();
            }
        }
        // Expired counters may or may not have been swept.
        let alive = self.states.iter().filter(|((_, counter), state)| {
            state.expires_at(self.counters[*counter].quota()) > now
        });
        prop_assert!((alive.count()..=self.states.len()).contains(&len(store)));
        Ok(())
    }

    fn decide(
        &mut self,
        store: &MemoryStore,
        checks: Vec<Asked>,
        now: Timestamp,
    ) -> TestCaseResult {
        let verdict = self.ask(&checks, |batch| store.decide(batch, now));
        let allowed = checks
            .iter()
            .all(|asked| self.says(*asked, now).is_allowed());
        prop_assert_eq!(verdict.is_allowed(), allowed);
        self.agree(&verdict, &checks, allowed)?;
        if allowed {
            self.charge(&checks, now);
            self.last = Some((checks, now));
        }
        Ok(())
    }

    fn refund(&mut self, store: &MemoryStore, now: Timestamp) {
        let Some((checks, charged_at)) = self.last.take() else {
            return;
        };
        self.ask(&checks, |batch| store.refund(batch, charged_at, now));
        for (subject, counter, cost) in checks {
            let quota = self.counters[counter].quota();
            if let Some(state) = self.states.get_mut(&(subject, counter)) {
                state.refund(quota, charged_at, now, cost);
            }
        }
    }

    fn ask<T: Unpin>(&self, checks: &[Asked], ask: impl FnOnce(&Batch<'_>) -> StoreFuture<T>) -> T {
        let keys: Vec<Subject<'_>> = checks.iter().map(|asked| Subject::from(asked.0)).collect();
        let checks: Vec<Check<'_>> = keys
            .iter()
            .zip(checks)
            .map(|(key, asked)| Check::new(key, &self.counters[asked.1]).with_cost(asked.2))
            .collect();
        let batch = Batch::new(&checks).expect("a valid batch");
        ask(&batch).wait().expect("memory answers")
    }

    /// Compares the usages. Without a charge, a check that has room has the usage without its cost.
    fn agree(&self, verdict: &Usages, checks: &[Asked], charged: bool) -> TestCaseResult {
        prop_assert_eq!(verdict.usages().len(), checks.len());
        for (asked, usage) in checks.iter().zip(verdict.usages()) {
            let mut expected = self.says(*asked, verdict.at());
            if expected.is_allowed() && !charged {
                expected = self.says((asked.0, asked.1, 0), verdict.at());
            }
            prop_assert_eq!(*usage, expected, "{:?}", asked);
        }
        Ok(())
    }

    fn says(&self, (subject, counter, cost): Asked, now: Timestamp) -> Usage {
        let quota = self.counters[counter].quota();
        self.state(subject, counter).assess(quota, now, cost)
    }

    fn charge(&mut self, checks: &[Asked], now: Timestamp) {
        for (subject, counter, cost) in checks.iter().filter(|check| check.2 > 0) {
            let quota = *self.counters[*counter].quota();
            let mut state = self.state(*subject, *counter);
            state.charge(&quota, now, *cost);
            self.states.insert((*subject, *counter), state);
        }
    }

    fn state(&self, subject: u64, counter: usize) -> State {
        let fresh = || State::fresh(self.counters[counter].quota());
        self.states
            .get(&(subject, counter))
            .cloned()
            .unwrap_or_else(fresh)
    }
}

fn acts() -> impl Strategy<Value = Act> {
    let checks = || vec((0..SUBJECTS, 0..QUOTAS.len(), 0..4_u64), 1..=6);
    prop_oneof![
        12 => checks().prop_map(Act::Decide),
        2 => checks().prop_map(Act::Peek),
        2 => checks().prop_map(Act::Record),
        2 => Just(Act::Refund),
        1 => (0..SUBJECTS, 0..QUOTAS.len()).prop_map(|(subject, counter)| Act::Reset(subject, counter)),
        1 => (0..SUBJECTS).prop_map(Act::ResetSubject),
        1 => Just(Act::Sweep),
        1 => prop_oneof![9 => Just(Act::Sweep), 1 => Just(Act::Clear)],
    ]
}
