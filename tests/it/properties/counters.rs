//! One counter in each of its forms: as a history, as a plain state, and in a store.

use tollgate::algorithm::State;
use tollgate::{
    Batch, Check, Counter, MemoryStore, Outcome, Quota, Store, StoreFuture, Subject, Timestamp,
    Usage, Usages,
};

use crate::reference::{ModelUsage, Reference};
use crate::support::store_ext::StoreExt as _;

/// Kinds of operations on a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Decide,
    Peek,
    Record,
    /// Refunds a charge of this instant.
    Refund(u64),
}

/// One operation on a counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deed {
    pub(crate) op: Op,
    pub(crate) quota: Quota,
    pub(crate) at: u64,
    pub(crate) cost: u64,
}

impl Deed {
    /// Applies the operation to a counter and returns the result. A refund has none.
    pub(crate) fn apply(&self, counter: &mut impl Counts) -> Option<ModelUsage> {
        let Self { op, at, cost, .. } = *self;
        match op {
            Op::Decide => Some(counter.decide(&self.quota, at, cost)),
            Op::Peek => Some(counter.peek(&self.quota, at, cost)),
            Op::Record => Some(counter.record(&self.quota, at, cost)),
            Op::Refund(charged_at) => {
                counter.refund(&self.quota, charged_at, at, cost);
                None
            }
        }
    }
}

/// A counter. The quota may have another amount each time.
pub(crate) trait Counts {
    fn decide(&mut self, quota: &Quota, now: u64, cost: u64) -> ModelUsage;
    fn peek(&self, quota: &Quota, now: u64, cost: u64) -> ModelUsage;
    fn record(&mut self, quota: &Quota, now: u64, cost: u64) -> ModelUsage;
    fn refund(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64);
}

impl Counts for Reference {
    fn decide(&mut self, quota: &Quota, now: u64, cost: u64) -> ModelUsage {
        Reference::decide(self, quota, now, cost)
    }

    fn peek(&self, quota: &Quota, now: u64, cost: u64) -> ModelUsage {
        Reference::peek(self, quota, now, cost)
    }

    fn record(&mut self, quota: &Quota, now: u64, cost: u64) -> ModelUsage {
        Reference::record(self, quota, now, cost)
    }

    fn refund(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64) {
        Reference::refund(self, quota, charged_at, now, cost);
    }
}

/// A state and the latest instant of a call, which a store has to keep in addition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    pub(crate) state: State,
    /// `None` uses every instant unchanged.
    latest: Option<Timestamp>,
}

impl Plain {
    pub(crate) fn new(quota: &Quota) -> Self {
        Self {
            state: State::fresh(quota),
            latest: Some(Timestamp::EPOCH),
        }
    }

    pub(crate) fn without_clock(quota: &Quota) -> Self {
        Self {
            state: State::fresh(quota),
            latest: None,
        }
    }

    /// Evaluates `cost` at an instant after or before the last charge.
    pub(crate) fn assess(&self, quota: &Quota, now: u64, cost: u64) -> Usage {
        self.state.assess(quota, Timestamp::from_micros(now), cost)
    }

    fn at_least_latest(&mut self, now: u64) -> Timestamp {
        let now = Timestamp::from_micros(now);
        let Some(latest) = &mut self.latest else {
            return now;
        };
        *latest = now.max(*latest);
        *latest
    }
}

impl Counts for Plain {
    fn decide(&mut self, quota: &Quota, now: u64, cost: u64) -> ModelUsage {
        let now = self.at_least_latest(now);
        let usage = self.state.assess(quota, now, cost);
        if usage.outcome() == Outcome::Allowed && cost > 0 {
            self.state.charge(quota, now, cost);
        }
        usage.into()
    }

    fn peek(&self, quota: &Quota, now: u64, cost: u64) -> ModelUsage {
        let now = Timestamp::from_micros(now).max(self.latest.unwrap_or_default());
        self.state.peek(quota, now, cost).into()
    }

    fn record(&mut self, quota: &Quota, now: u64, cost: u64) -> ModelUsage {
        let now = self.at_least_latest(now);
        if cost > 0 {
            self.state.charge(quota, now, cost);
        }
        self.state.assess(quota, now, 0).into()
    }

    fn refund(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64) {
        let now = self.at_least_latest(now);
        let charged_at = Timestamp::from_micros(charged_at);
        self.state.refund(quota, charged_at, now, cost);
    }
}

/// A counter of one subject in a store: checked in a batch of its own, in a batch with another
/// check, and by the fast path for a single check. All three must agree.
#[derive(Debug)]
pub(crate) struct Stored<S = MemoryStore> {
    alone: S,
    in_company: S,
    single: S,
    counter: Counter,
    company: Counter,
}

impl Stored {
    /// In memory.
    pub(crate) fn new(quota: &Quota) -> Self {
        let store = || MemoryStore::builder().capacity(64).build();
        Self::of(quota, [(); 3].map(|()| store().expect("a valid capacity")))
    }
}

impl<S: Store> Stored<S> {
    /// In these stores, which do not share counters.
    pub(crate) fn of(quota: &Quota, [alone, in_company, single]: [S; 3]) -> Self {
        let boundless = "9007199254740991/3653d, fixed-window".parse();
        let company = Counter::new("company", boundless.expect("a valid quota"));
        Self {
            alone,
            in_company,
            single,
            counter: Counter::new("rule", *quota).expect("a valid name"),
            company: company.expect("a valid name"),
        }
    }

    /// Subject of the counter.
    pub(crate) fn subject() -> Subject<'static> {
        Subject::from("alice")
    }

    pub(crate) fn sweep(&self, now: u64) {
        for store in [&self.alone, &self.in_company, &self.single] {
            let swept = store.sweep(Timestamp::from_micros(now)).wait();
            swept.expect("the store answers");
        }
    }

    /// Calls all stores except the one for single checks.
    fn call<T>(
        &self,
        quota: &Quota,
        cost: u64,
        call: impl Fn(&S, &Batch<'_>) -> StoreFuture<T>,
    ) -> [T; 2]
    where
        T: Unpin,
    {
        let subject = Self::subject();
        let check = Check::new(&subject, &self.counter).with_cost(cost);
        let checks = [check.with_quota(quota), Check::new(&subject, &self.company)];
        let ways = [(&self.alone, &checks[..1]), (&self.in_company, &checks[..])];
        ways.map(|(store, checks)| {
            let batch = Batch::new(checks).expect("only the amount differs");
            call(store, &batch).wait().expect("the store answers")
        })
    }

    /// Calls the store for single checks; with a batch if the operation has no single form.
    fn call_single<T: Unpin>(
        &self,
        quota: &Quota,
        cost: u64,
        call: impl FnOnce(&S, &Check<'_>) -> StoreFuture<T>,
    ) -> T {
        let subject = Self::subject();
        let check = Check::new(&subject, &self.counter).with_cost(cost);
        let answer = call(&self.single, &check.with_quota(quota));
        answer.wait().expect("the store answers")
    }
}

/// Returns the usage that all three stores have returned.
fn agreed(all_usages: &[Usages; 2], single: (Usage, Timestamp)) -> ModelUsage {
    let [alone, in_company] = all_usages;
    assert_eq!(alone.usages()[0], in_company.usages()[0], "in company");
    assert_eq!((alone.usages()[0], alone.at()), single, "as a single check");
    alone.usages()[0].into()
}

impl<S: Store> Counts for Stored<S> {
    fn decide(&mut self, quota: &Quota, now: u64, cost: u64) -> ModelUsage {
        let now = Timestamp::from_micros(now);
        let all_usages = self.call(quota, cost, |store, batch| store.decide(batch, now));
        let single = self.call_single(quota, cost, |store, check| store.decide_one(check, now));
        agreed(&all_usages, single)
    }

    fn peek(&self, quota: &Quota, now: u64, cost: u64) -> ModelUsage {
        let now = Timestamp::from_micros(now);
        let all_usages = self.call(quota, cost, |store, batch| store.peek(batch, now));
        let single = self.call_single(quota, cost, |store, check| store.peek(&only(check), now));
        agreed(&all_usages, (single.usages()[0], single.at()))
    }

    fn record(&mut self, quota: &Quota, now: u64, cost: u64) -> ModelUsage {
        let now = Timestamp::from_micros(now);
        let all_usages = self.call(quota, cost, |store, batch| store.record(batch, now));
        let single = self.call_single(quota, cost, |store, check| store.record(&only(check), now));
        agreed(&all_usages, (single.usages()[0], single.at()))
    }

    fn refund(&mut self, quota: &Quota, charged_at: u64, now: u64, cost: u64) {
        let charged_at = Timestamp::from_micros(charged_at);
        let now = Timestamp::from_micros(now);
        self.call(quota, cost, |store, batch| {
            store.refund(batch, charged_at, now)
        });
        self.call_single(quota, cost, |store, check| {
            store.refund(&only(check), charged_at, now)
        });
    }
}

fn only<'a>(check: &'a Check<'a>) -> Batch<'a> {
    Batch::new(std::slice::from_ref(check)).expect("only the amount differs")
}
