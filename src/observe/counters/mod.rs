//! What is counted of each endpoint and of each quota.

mod striped;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

pub(super) use self::striped::Stripe;
use self::striped::StripedCounters;
use crate::sync::locked;
use crate::usage::Usage;

/// One endpoint or one quota.
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

/// A quota of which everything is left has this much of it.
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

    /// Its place among those of its kind.
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

    /// What all that were allowed had left, together.
    #[expect(clippy::cast_precision_loss, reason = "of a sum of shares")]
    pub(super) fn remaining(&self) -> f64 {
        self.allowed.sum(REMAINING) as f64 / WHOLE as f64
    }
}

/// How much of a quota is left, in parts of [`WHOLE`].
#[inline]
fn remaining_parts(usage: &Usage) -> u64 {
    const COUNTABLE: u64 = u64::MAX / WHOLE;
    match usage.limit() {
        0 => 0,
        limit if limit <= COUNTABLE => usage.remaining() * WHOLE / limit,
        // Nothing is limited to as much.
        _ => WHOLE,
    }
}

/// Returns the share of a quota that remains, from 0 to 1.
#[cfg(feature = "metrics")]
#[inline]
#[expect(clippy::cast_precision_loss, reason = "it is a share")]
pub(super) fn remaining_share(usage: &Usage) -> f32 {
    match usage.limit() {
        0 => 0.0,
        limit => usage.remaining() as f32 / limit as f32,
    }
}

/// Counter of an event that every request can cause.
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

/// All counters of a kind, by name: what a reload brings back goes on counting.
#[derive(Debug, Default)]
pub(crate) struct CounterRegistry {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by_name: HashMap<Arc<str>, Arc<DecisionCounters>>,
    all: Vec<Arc<DecisionCounters>>,
}

impl CounterRegistry {
    /// More names than this are counted together: they may come from ever new policies.
    pub(crate) const MOST: usize = 1_024;

    /// Stands for all that are too many. No route and no quota is called so.
    const OTHERS: &'static str = "(others)";

    /// The one of this name.
    pub(crate) fn of(&self, name: &str) -> Arc<DecisionCounters> {
        let mut known = self.known();
        let name = if known.by_name.contains_key(name) || known.all.len() < Self::MOST {
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

    /// Looks at all of them, by number.
    pub(super) fn with_all<T>(&self, look: impl FnOnce(&[Arc<DecisionCounters>]) -> T) -> T {
        look(&self.known().all)
    }

    /// All of them, by number.
    pub(super) fn all(&self) -> Vec<Arc<DecisionCounters>> {
        self.known().all.clone()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        locked(&self.known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::usage::Outcome;

    #[test]
    fn too_many_names_are_counted_together() {
        let counters = CounterRegistry::default();
        for number in 0..CounterRegistry::MOST {
            counters.of(&format!("GET /{number}"));
        }
        counters.of("GET /one/more").deny();
        counters.of("GET /and/another").deny();
        counters.of("GET /7").deny();
        assert_eq!(counters.of("GET /7").denied(), 1);
        let all = counters.all();
        assert_eq!(all.len(), CounterRegistry::MOST + 1);
        assert_eq!(&**all[CounterRegistry::MOST].name(), "(others)");
        assert_eq!(all[CounterRegistry::MOST].denied(), 2);
        let numbers = all.iter().map(|counters| counters.number());
        assert!(numbers.eq(0..=CounterRegistry::MOST));
    }

    #[cfg(feature = "metrics")]
    #[test]
    fn shares_are_shares_at_both_ends() {
        let share = |limit, used| {
            remaining_share(&Usage::new(limit, used, Timestamp::EPOCH, Outcome::Allowed))
        };
        assert_eq!(share(0, 0).to_bits(), 0.0_f32.to_bits());
        assert_eq!(share(4, 1).to_bits(), 0.75_f32.to_bits());
        assert_eq!(share(u64::MAX, 0).to_bits(), 1.0_f32.to_bits());
        assert_eq!(share(5, 9).to_bits(), 0.0_f32.to_bits());
    }
}
