//! Our side.

use tollgate::{
    Algorithm, Batch, Check, Clock as _, Counter, Limiter, MemoryStore, Override, Quota,
    Store as _, Subject, SystemClock, Window,
};

use crate::work::{Allowance, Key, USERS, User};

/// What the default store keeps; it is raised only where there are more counters.
const DEFAULT_CAPACITY: usize = 1_000_000;

fn quota(allowance: Allowance, algorithm: Algorithm) -> Quota {
    let window = Window::new(allowance.window).expect("a valid window");
    let quota = Quota::builder(allowance.amount.into(), window).algorithm(algorithm);
    quota.build().expect("a valid quota")
}

fn store(counters: usize) -> MemoryStore {
    let store = MemoryStore::builder().capacity(counters.max(DEFAULT_CAPACITY));
    store.build().expect("a valid capacity")
}

/// One quota: a limiter as it comes.
pub struct One(Limiter);

impl One {
    pub fn new(keys: &[impl Key], allowance: Allowance, algorithm: Algorithm) -> Self {
        let limiter = Limiter::builder()
            .quota(quota(allowance, algorithm))
            .store(store(keys.len()));
        let limiter = limiter.build().expect("a valid limiter");
        for key in keys {
            let spent = key.check(&limiter).cost(allowance.spent.into()).wait();
            assert!(spent.expect("memory answers").is_allowed());
        }
        Self(limiter)
    }

    /// Sets another limit for one key.
    pub fn set_override(&self, key: &str) {
        let counter = &self.0.counters()[0];
        let new = Override::new(key, counter.rule(), *counter.quota());
        let set = self.0.set_override(new.expect("a valid override"));
        set.wait().expect("memory keeps overrides");
    }

    #[inline]
    pub fn decide(&self, key: &impl Key) -> bool {
        key.check(&self.0)
            .wait()
            .is_ok_and(|decision| decision.is_allowed())
    }
}

/// Three quotas in one batch at one instant: two of a user, one of the tenant.
pub struct Three {
    counters: [Counter; 3],
    store: MemoryStore,
    clock: SystemClock,
}

impl Three {
    pub fn new(users: &[User<impl Key>], three: [Allowance; 3], algorithm: Algorithm) -> Self {
        let [hourly, daily, tenant] = three;
        let counter = |rule, allowance| {
            Counter::new(rule, quota(allowance, algorithm)).expect("a valid name")
        };
        let this = Self {
            counters: [
                counter("user", hourly),
                counter("user", daily),
                counter("tenant", tenant),
            ],
            store: store(users.len() * 2 + users.len().div_ceil(USERS)),
            clock: SystemClock::new(),
        };
        for user in users {
            this.spend(&user.key.subject(), 0, hourly);
            this.spend(&user.key.subject(), 1, daily);
        }
        for first in users.iter().step_by(USERS) {
            this.spend(&first.tenant.subject(), 2, tenant);
        }
        this
    }

    fn spend(&self, subject: &Subject<'_>, counter: usize, allowance: Allowance) {
        let check = Check::new(subject, &self.counters[counter]);
        assert!(self.put(&[check.with_cost(allowance.spent.into())]));
    }

    #[inline]
    pub fn decide(&self, user: &User<impl Key>) -> bool {
        let [hourly, daily, shared] = &self.counters;
        let (key, tenant) = (user.key.subject(), user.tenant.subject());
        self.put(&[
            Check::new(&key, hourly),
            Check::new(&key, daily),
            Check::new(&tenant, shared),
        ])
    }

    #[inline]
    fn put(&self, checks: &[Check<'_>]) -> bool {
        let Ok(batch) = Batch::new(checks) else {
            return false;
        };
        // Read in place, as the layer does: `Usages` is large.
        let answer = self.store.decide(&batch, self.clock.now());
        matches!(answer.as_ready(), Some(Ok(usages)) if usages.is_allowed())
    }
}
