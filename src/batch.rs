//! All checks of one request, decided together.

use crate::error::Invalid;
use crate::key::{Counter, Subject};
use crate::quota::Quota;

/// The most checks that one batch can have.
pub const MAX_CHECKS: usize = 8;

/// One counter to charge: whose, which, how much.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    subject: &'a Subject<'a>,
    counter: &'a Counter,
    quota: &'a Quota,
    cost: u64,
    rank: u8,
}

impl<'a> Check<'a> {
    /// A check with cost 1 and the counter's own quota.
    #[must_use]
    pub const fn new(subject: &'a Subject<'a>, counter: &'a Counter) -> Self {
        Self {
            subject,
            counter,
            quota: counter.quota(),
            cost: 1,
            rank: 0,
        }
    }

    /// Charges this much instead of 1. 0 asks whether the limit is kept, and charges nothing.
    #[must_use]
    pub const fn with_cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// Uses another amount than the counter's own (a tier, an override). Only the amount and
    /// the burst may differ: what is counted stays the same counter.
    #[must_use]
    pub const fn with_quota(mut self, quota: &'a Quota) -> Self {
        self.quota = quota;
        self
    }

    /// How specific the rule is, 0 being the most: of quotas with equally little left, the
    /// more specific one is reported.
    #[must_use]
    pub const fn with_rank(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }

    /// Whose counter.
    #[must_use]
    pub const fn subject(&self) -> &'a Subject<'a> {
        self.subject
    }

    /// Which counter.
    #[must_use]
    pub const fn counter(&self) -> &'a Counter {
        self.counter
    }

    /// The quota that applies.
    #[must_use]
    pub const fn quota(&self) -> &'a Quota {
        self.quota
    }

    /// How much to charge.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// See [`Check::with_rank`].
    #[must_use]
    pub const fn rank(&self) -> u8 {
        self.rank
    }
}

/// Up to [`MAX_CHECKS`] checks, decided at one instant: all are charged, or none.
///
/// ```
/// use tollgate::{Batch, Check, Counter, MemoryStore, Quota, Store, Subject, Timestamp};
///
/// let per_user = Counter::new("api", Quota::per_minute(10)?)?;
/// let per_tenant = Counter::new("tenant", Quota::per_minute(1)?)?;
/// let alice = Subject::from([("user", "alice")]);
/// let acme = Subject::from([("tenant", "acme")]);
///
/// let mut batch = Batch::new();
/// batch.push(Check::new(&alice, &per_user))?;
/// batch.push(Check::new(&acme, &per_tenant))?;
///
/// let store = MemoryStore::new();
/// let now = Timestamp::from_secs(1_735_689_600);
/// assert!(store.decide(&batch, now).wait()?.is_allowed());
///
/// // Acme has nothing left, so Alice is not charged either.
/// let denied = store.decide(&batch, now).wait()?;
/// assert!(!denied.is_allowed());
/// assert_eq!(denied.usages()[0].remaining(), 9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch<'a> {
    checks: [Option<Check<'a>>; MAX_CHECKS],
    len: u8,
}

impl<'a> Batch<'a> {
    /// An empty batch, which is always allowed.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            checks: [None; MAX_CHECKS],
            len: 0,
        }
    }

    /// Adds a check.
    ///
    /// An unlimited quota is left out. The same counter of the same subject once more adds to
    /// the cost of the first. Refuses more than [`MAX_CHECKS`], and a quota of another window
    /// or algorithm than the counter's.
    #[inline]
    pub fn push(&mut self, check: Check<'a>) -> Result<(), Invalid> {
        if check.quota.is_unlimited() {
            return Ok(());
        }
        if !std::ptr::eq(check.quota, check.counter.quota()) {
            same_counter(&check)?;
        }
        let twin = self
            .checks
            .iter_mut()
            .map_while(Option::as_mut)
            .find(|other| {
                other.counter.id() == check.counter.id() && other.subject == check.subject
            });
        if let Some(twin) = twin {
            twin.cost = twin.cost.saturating_add(check.cost);
            return Ok(());
        }
        match self.checks.get_mut(usize::from(self.len)) {
            Some(free) => *free = Some(check),
            None => {
                return Err(Invalid::new(
                    "batch",
                    format_args!("{} checks", MAX_CHECKS + 1),
                    format!("at most {MAX_CHECKS} quotas for one request"),
                ));
            }
        }
        self.len += 1;
        Ok(())
    }

    /// The checks, in the order in which they were added.
    #[inline]
    pub fn checks(&self) -> impl Iterator<Item = &Check<'a>> + Clone {
        self.checks.iter().map_while(Option::as_ref)
    }

    /// How many checks there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is nothing to check.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// What remains to be known of a batch once its store has answered.
#[derive(Clone, Copy)]
pub(crate) struct Outline {
    /// By rank, then the longer window first.
    pub(crate) order: [(u8, u64); MAX_CHECKS],
    pub(crate) cost: u64,
}

impl Batch<'_> {
    #[inline]
    pub(crate) fn outline(&self) -> Outline {
        let mut order = [(0, 0); MAX_CHECKS];
        for (check, order) in self.checks().zip(&mut order) {
            *order = (check.rank, u64::MAX - check.quota.window_micros());
        }
        Outline {
            order,
            cost: self.checks().next().map_or(0, Check::cost),
        }
    }
}

#[cold]
fn same_counter(check: &Check<'_>) -> Result<(), Invalid> {
    let (own, other) = (check.counter.quota(), check.quota);
    // `blocked` has no window of its own: it blocks whichever counter it is put on.
    let same = own.window() == other.window()
        && own.algorithm() == other.algorithm()
        && own.buckets() == other.buckets();
    if same || other.is_blocked() {
        return Ok(());
    }
    Err(Invalid::new(
        "quota of a check",
        other,
        format!("the window and algorithm of its counter, `{own}`"),
    ))
}
