//! Counters of decisions, for each endpoint and each quota.

mod striped;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

pub(super) use self::striped::Stripe;
use self::striped::StripedCounters;
use crate::sync::locked;
use crate::usage::Usage;

/// Counters of one endpoint or one quota. Kept while the process runs.
#[derive(Debug)]
pub(crate) struct DecisionCounters {
    name: Arc<str>,
    number: usize,
    allowed: StripedCounters<3>,
    denied: AtomicU64,
    would_deny: AtomicU64,
    #[cfg(feature = "metrics")]
    pub(super) metrics: super::metrics::NamedHandles,
}

const ALLOWED: usize = 0;
const WARNED: usize = 1;
const REMAINING: usize = 2;

/// Remaining share of an unused quota: shares are counted in parts of this.
const WHOLE: u64 = 1_024;

impl DecisionCounters {
    fn new(name: &str, number: usize) -> Self {
        Self {
            name: name.into(),
            number,
            allowed: StripedCounters::default(),
            denied: AtomicU64::new(0),
            would_deny: AtomicU64::new(0),
            #[cfg(feature = "metrics")]
            metrics: super::metrics::NamedHandles::default(),
        }
    }

    pub(crate) const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the index in the registry.
    pub(super) const fn number(&self) -> usize {
        self.number
    }

    /// Counts an allowed request. Returns how many this stripe had counted before.
    #[inline]
    pub(super) fn allow(&self, stripe: Stripe, warns: bool) -> u64 {
        if warns {
            self.allowed.add(stripe, WARNED, 1);
        }
        self.allowed.add(stripe, ALLOWED, 1)
    }

    /// Counts an allowed request and the share that remains of its quota.
    #[inline]
    pub(super) fn allow_with(&self, stripe: Stripe, usage: &Usage) {
        self.allowed.add(stripe, ALLOWED, 1);
        self.allowed.add(stripe, REMAINING, remaining_parts(usage));
    }

    pub(super) fn deny(&self) {
        self.denied.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn would_deny(&self) {
        self.would_deny.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn allowed(&self) -> u64 {
        self.allowed.sum(ALLOWED)
    }

    pub(super) fn warned(&self) -> u64 {
        self.allowed.sum(WARNED)
    }

    pub(super) fn denied(&self) -> u64 {
        self.denied.load(Ordering::Relaxed)
    }

    pub(super) fn would_have_denied(&self) -> u64 {
        self.would_deny.load(Ordering::Relaxed)
    }

    /// Returns the sum of the remaining shares of all allowed requests.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a sum of shares needs no more precision"
    )]
    pub(super) fn remaining(&self) -> f64 {
        self.allowed.sum(REMAINING) as f64 / WHOLE as f64
    }
}

/// Returns the remaining share of a quota in parts of [`WHOLE`].
#[inline]
fn remaining_parts(usage: &Usage) -> u64 {
    const COUNTABLE: u64 = u64::MAX / WHOLE;
    match usage.limit() {
        0 => 0,
        limit if limit <= COUNTABLE => usage.remaining() * WHOLE / limit,
        // Larger limits are unlimited.
        _ => WHOLE,
    }
}

/// Returns the remaining share of a quota, from 0 to 1.
#[cfg(feature = "metrics")]
#[inline]
#[expect(
    clippy::cast_precision_loss,
    reason = "a share needs no more precision"
)]
pub(super) fn remaining_share(usage: &Usage) -> f32 {
    match usage.limit() {
        0 => 0.0,
        limit => usage.remaining() as f32 / limit as f32,
    }
}

/// One counter that every request can increment.
#[derive(Debug, Default)]
pub(super) struct StripedCounter(StripedCounters<1>);

impl StripedCounter {
    #[inline]
    pub(super) fn increment(&self) {
        self.0.add(Stripe::current(), 0, 1);
    }

    pub(super) fn sum(&self) -> u64 {
        self.0.sum(0)
    }
}

/// Counters of all endpoints or of all quotas, by name. A name that a reload removes and a later one
/// brings back continues to count.
#[derive(Debug, Default)]
pub(crate) struct CounterRegistry {
    known: Mutex<RegisteredCounters>,
}

#[derive(Debug, Default)]
struct RegisteredCounters {
    by_name: HashMap<Arc<str>, Arc<DecisionCounters>>,
    all: Vec<Arc<DecisionCounters>>,
}

impl CounterRegistry {
    /// Bounds the memory of a process that reloads policies with new names. Further names are counted
    /// together.
    pub(crate) const MAX_NAMES: usize = 1_024;

    /// Name of the counters for further names. No route and no quota can have it.
    const OTHERS: &'static str = "(others)";

    /// Returns the counters of a name, which are created if they are missing.
    pub(crate) fn of(&self, name: &str) -> Arc<DecisionCounters> {
        let mut known = self.known();
        let name = if known.by_name.contains_key(name) || known.all.len() < Self::MAX_NAMES {
            name
        } else {
            Self::OTHERS
        };
        if let Some(counters) = known.by_name.get(name) {
            return Arc::clone(counters);
        }
        let counters = Arc::new(DecisionCounters::new(name, known.all.len()));
        known.all.push(Arc::clone(&counters));
        known
            .by_name
            .insert(Arc::clone(&counters.name), Arc::clone(&counters));
        counters
    }

    /// Returns whether names may be added before their first request. Half of the names are left to
    /// those that requests show: a reload must not use up the names of quotas that have traffic.
    #[cfg(feature = "metrics")]
    pub(super) fn has_room_in_advance(&self) -> bool {
        self.known().all.len() < Self::MAX_NAMES / 2
    }

    /// Calls `read` with all counters, ordered by number.
    pub(super) fn with_all<T>(&self, read: impl FnOnce(&[Arc<DecisionCounters>]) -> T) -> T {
        read(&self.known().all)
    }

    /// Returns all counters, ordered by number.
    pub(super) fn all(&self) -> Vec<Arc<DecisionCounters>> {
        self.known().all.clone()
    }

    fn known(&self) -> MutexGuard<'_, RegisteredCounters> {
        locked(&self.known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "metrics")]
    use crate::clock::Timestamp;
    #[cfg(feature = "metrics")]
    use crate::usage::Outcome;

    #[test]
    fn names_beyond_the_maximum_are_counted_together() {
        let counters = CounterRegistry::default();
        for number in 0..CounterRegistry::MAX_NAMES {
            counters.of(&format!("GET /{number}"));
        }
        counters.of("GET /one/more").deny();
        counters.of("GET /and/another").deny();
        counters.of("GET /7").deny();
        assert_eq!(counters.of("GET /7").denied(), 1);
        let all = counters.all();
        assert_eq!(all.len(), CounterRegistry::MAX_NAMES + 1);
        assert_eq!(&**all[CounterRegistry::MAX_NAMES].name(), "(others)");
        assert_eq!(all[CounterRegistry::MAX_NAMES].denied(), 2);
        let numbers = all.iter().map(|counters| counters.number());
        assert!(numbers.eq(0..=CounterRegistry::MAX_NAMES));
    }

    #[cfg(feature = "metrics")]
    #[test]
    fn half_of_the_names_are_left_to_requests() {
        let counters = CounterRegistry::default();
        let numbers = 0..CounterRegistry::MAX_NAMES;
        let in_advance = numbers.take_while(|number| {
            let has_room = counters.has_room_in_advance();
            counters.of(&format!("ip;{number}"));
            has_room
        });
        assert_eq!(in_advance.count(), CounterRegistry::MAX_NAMES / 2);
    }

    #[cfg(feature = "metrics")]
    #[test]
    fn remaining_share_is_between_0_and_1() {
        let share = |limit, used| {
            remaining_share(&Usage::new(limit, used, Timestamp::EPOCH, Outcome::Allowed))
        };
        assert_eq!(share(0, 0).to_bits(), 0.0_f32.to_bits());
        assert_eq!(share(4, 1).to_bits(), 0.75_f32.to_bits());
        assert_eq!(share(u64::MAX, 0).to_bits(), 1.0_f32.to_bits());
        assert_eq!(share(5, 9).to_bits(), 0.0_f32.to_bits());
    }
}
