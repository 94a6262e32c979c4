//! The work that both sides of a row do.

use std::hash::Hash;
use std::net::Ipv4Addr;
use std::time::Duration;

use tollgate::{CheckBuilder, Limiter, Subject};
use tollgate_bench::{addresses, names, tenants};

/// An amount per window, part of which is spent before measuring begins.
///
/// So much is spent that no counter expires while it is measured: a store that removes expired
/// counters would otherwise have less to look up than one that does not.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    pub amount: u32,
    pub window: Duration,
    pub spent: u32,
}

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// How many users share a tenant.
pub const USERS: usize = 100;

impl Allowance {
    /// For a user with as many requests as others.
    pub const USER: Self = Self::new(10_000, HOUR, 1_000);
    /// For users with far more requests.
    pub const AMPLE: Self = Self::new(100_000_000, HOUR, 10_000_000);
    /// Nothing is left, and nothing comes back for minutes.
    pub const EXHAUSTED: Self = Self::new(10, HOUR, 10);
    /// Two of a user, one of the tenant.
    pub const THREE: [Self; 3] = [Self::USER, Self::new(100_000, DAY, 1_000), Self::AMPLE];
    /// Users, some of which send far more requests.
    pub const AMPLE_THREE: [Self; 3] = [
        Self::AMPLE,
        Self::new(100_000_000, DAY, 10_000_000),
        Self::AMPLE,
    ];

    const fn new(amount: u32, window: Duration, spent: u32) -> Self {
        Self {
            amount,
            window,
            spent,
        }
    }

    /// How long until one permit is back.
    pub fn interval(self) -> Duration {
        self.window / self.amount
    }
}

/// Work that both sides can do.
pub trait Key: Hash + Eq + Clone + Send + Sync {
    fn all(count: usize) -> Vec<Self>;
    fn subject(&self) -> Subject<'_>;
    fn check<'a>(&'a self, limiter: &'a Limiter) -> CheckBuilder<'a>;
}

impl Key for String {
    fn all(count: usize) -> Vec<Self> {
        names(count)
    }

    #[inline]
    fn subject(&self) -> Subject<'_> {
        Subject::from(self.as_str())
    }

    #[inline]
    fn check<'a>(&'a self, limiter: &'a Limiter) -> CheckBuilder<'a> {
        limiter.check(self.as_str())
    }
}

impl Key for Ipv4Addr {
    fn all(count: usize) -> Vec<Self> {
        addresses(count)
    }

    #[inline]
    fn subject(&self) -> Subject<'_> {
        Subject::from(*self)
    }

    #[inline]
    fn check<'a>(&'a self, limiter: &'a Limiter) -> CheckBuilder<'a> {
        limiter.check(*self)
    }
}

/// A user with a tenant.
#[derive(Clone)]
pub struct User<K> {
    pub key: K,
    pub tenant: String,
}

impl<K: Key> User<K> {
    pub fn all(count: usize) -> Vec<Self> {
        let tenants = tenants(count, USERS);
        let numbered = K::all(count).into_iter().enumerate();
        numbered
            .map(|(number, key)| Self {
                key,
                tenant: tenants[number / USERS].clone(),
            })
            .collect()
    }
}
