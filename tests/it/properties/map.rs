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
type RequestedCheck = (u64, usize, u64);

#[derive(Clone, Debug)]
enum Act {
    Decide(Vec<RequestedCheck>),
    Peek(Vec<RequestedCheck>),
    Record(Vec<RequestedCheck>),
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
    last: Option<(Vec<RequestedCheck>, Timestamp)>,
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
                let usages = self.call(&checks, |batch| store.peek(batch, now));
                self.agree(&usages, &checks, false)?;
            }
            Act::Record(checks) => {
                let checks = merged(checks);
                let usages = self.call(&checks, |batch| store.record(batch, now));
                self.charge(&checks, now);
                let nothing_more: Vec<RequestedCheck> = checks
                    .iter()
                    .map(|requested| (requested.0, requested.1, 0))
                    .collect();
                self.agree(&usages, &nothing_more, true)?;
            }
            Act::Refund => self.refund(store, now),
            Act::Reset(subject, counter) => {
                self.call(&[(*subject, *counter, 1)], |batch| store.reset(batch));
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
        checks: Vec<RequestedCheck>,
        now: Timestamp,
    ) -> TestCaseResult {
        let usages = self.call(&checks, |batch| store.decide(batch, now));
        let allowed = checks
            .iter()
            .all(|requested| self.assess(*requested, now).is_allowed());
        prop_assert_eq!(usages.is_allowed(), allowed);
        self.agree(&usages, &checks, allowed)?;
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
        self.call(&checks, |batch| store.refund(batch, charged_at, now));
        for (subject, counter, cost) in checks {
            let quota = self.counters[counter].quota();
            if let Some(state) = self.states.get_mut(&(subject, counter)) {
                state.refund(quota, charged_at, now, cost);
            }
        }
    }

    fn call<T: Unpin>(
        &self,
        checks: &[RequestedCheck],
        call: impl FnOnce(&Batch<'_>) -> StoreFuture<T>,
    ) -> T {
        let keys: Vec<Subject<'_>> = checks
            .iter()
            .map(|requested| Subject::from(requested.0))
            .collect();
        let checks: Vec<Check<'_>> = keys
            .iter()
            .zip(checks)
            .map(|(key, requested)| {
                Check::new(key, &self.counters[requested.1]).with_cost(requested.2)
            })
            .collect();
        let batch = Batch::new(&checks).expect("a valid batch");
        call(&batch).wait().expect("memory answers")
    }

    /// Compares the usages. Without a charge, a check that has room has the usage without its cost.
    fn agree(&self, usages: &Usages, checks: &[RequestedCheck], charged: bool) -> TestCaseResult {
        prop_assert_eq!(usages.usages().len(), checks.len());
        for (requested, usage) in checks.iter().zip(usages.usages()) {
            let mut expected = self.assess(*requested, usages.at());
            if expected.is_allowed() && !charged {
                expected = self.assess((requested.0, requested.1, 0), usages.at());
            }
            prop_assert_eq!(*usage, expected, "{:?}", requested);
        }
        Ok(())
    }

    fn assess(&self, (subject, counter, cost): RequestedCheck, now: Timestamp) -> Usage {
        let quota = self.counters[counter].quota();
        self.state(subject, counter).assess(quota, now, cost)
    }

    fn charge(&mut self, checks: &[RequestedCheck], now: Timestamp) {
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
