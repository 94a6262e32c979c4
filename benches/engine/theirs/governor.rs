//! governor: GCRA over a concurrent map.

use std::num::NonZeroU32;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::work::{Allowance, Key, USERS, User};

fn permits(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("not zero")
}

/// A keyed limiter with its default clock and its default store.
pub struct Governor<K: Key>(DefaultKeyedRateLimiter<K>);

impl<K: Key> Governor<K> {
    pub const NAME: &'static str = "governor";

    pub fn new<'a>(keys: impl IntoIterator<Item = &'a K>, allowance: Allowance) -> Self
    where
        K: 'a,
    {
        let quota = Quota::with_period(allowance.interval()).expect("not zero");
        let limiter = RateLimiter::keyed(quota.allow_burst(permits(allowance.amount)));
        for key in keys {
            let spent = limiter.check_key_n(key, permits(allowance.spent));
            assert!(spent.is_ok_and(|spent| spent.is_ok()));
        }
        Self(limiter)
    }

    #[inline]
    pub fn decide(&self, key: &K) -> bool {
        self.0.check_key(key).is_ok()
    }
}

/// Three limiters, checked in turn.
pub struct ThreeGovernors<K: Key> {
    hourly: Governor<K>,
    daily: Governor<K>,
    tenant: Governor<String>,
}

impl<K: Key> ThreeGovernors<K> {
    pub const NOTE: &'static str = "\
governor, three quotas: three limiters checked in turn, each with its own clock reading. If the \
second or third refuses, the ones before have charged; ours charges all or none.";

    pub fn new(users: &[User<K>], three: [Allowance; 3]) -> Self {
        let [hourly, daily, tenant] = three;
        let keys = || users.iter().map(|user| &user.key);
        let tenants = users.iter().step_by(USERS).map(|first| &first.tenant);
        Self {
            hourly: Governor::new(keys(), hourly),
            daily: Governor::new(keys(), daily),
            tenant: Governor::new(tenants, tenant),
        }
    }

    #[inline]
    pub fn decide(&self, user: &User<K>) -> bool {
        let User { key, tenant } = user;
        self.hourly.decide(key) && self.daily.decide(key) && self.tenant.decide(tenant)
    }
}
