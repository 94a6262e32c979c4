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

    /// Whether the quota is of the counter's own window and algorithm.
    #[inline]
    pub(crate) fn is_consistent(&self) -> bool {
        let (own, other) = (self.counter.quota(), self.quota);
        // `blocked` and `unlimited` have no window: they go on whichever counter they are put.
        std::ptr::eq(own, other)
            || other.counts_nothing()
            || (own.window() == other.window()
                && own.algorithm() == other.algorithm()
                && own.buckets() == other.buckets())
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
/// let checks = [Check::new(&alice, &per_user), Check::new(&acme, &per_tenant)];
/// let batch = Batch::new(&checks)?;
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
///
/// It borrows its checks from wherever they were put together, usually the stack.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    checks: &'a [Check<'a>],
}

impl<'a> Batch<'a> {
    /// A batch of these checks; of none, which is always allowed, too.
    ///
    /// Refuses more than [`MAX_CHECKS`], the same counter of the same subject twice, and a
    /// quota of another window or algorithm than its counter's.
    #[inline]
    pub fn new(checks: &'a [Check<'a>]) -> Result<Self, Invalid> {
        let fits = match checks {
            [only] => only.is_consistent(),
            several => {
                several.len() <= MAX_CHECKS
                    && several.iter().all(Check::is_consistent)
                    && first_twin(several).is_none()
            }
        };
        if fits {
            Ok(Self { checks })
        } else {
            Err(refuse(checks))
        }
    }

    /// The checks.
    #[inline]
    #[must_use]
    pub const fn checks(&self) -> &'a [Check<'a>] {
        self.checks
    }

    /// How each check ranks among equals, smallest first: by rank, then the longer window.
    #[inline]
    pub(crate) fn order(&self) -> impl ExactSizeIterator<Item = (u8, u64)> {
        let order = |check: &Check<'_>| (check.rank, u64::MAX - check.quota.window_micros());
        self.checks.iter().map(order)
    }
}

/// A check whose counter and subject were there before.
#[inline]
fn first_twin<'c, 'a>(checks: &'c [Check<'a>]) -> Option<&'c Check<'a>> {
    let twins = |check: &Check<'_>, other: &Check<'_>| {
        check.counter.id() == other.counter.id() && check.subject == other.subject
    };
    let before = |(index, check): &(usize, &Check<'_>)| {
        checks[..*index].iter().any(|other| twins(check, other))
    };
    checks
        .iter()
        .enumerate()
        .find(before)
        .map(|(_, check)| check)
}

#[cold]
fn refuse(checks: &[Check<'_>]) -> Invalid {
    if checks.len() > MAX_CHECKS {
        let found = format_args!("{} checks", checks.len()).to_string();
        return Invalid::new(
            "batch",
            found,
            format!("at most {MAX_CHECKS} for one request"),
        );
    }
    if let Some(check) = checks.iter().find(|check| !check.is_consistent()) {
        let own = check.counter.quota();
        let expected = format!("the window and algorithm of its counter, `{own}`");
        return Invalid::new("quota of a check", check.quota, expected);
    }
    let twin = first_twin(checks).map(|check| check.counter.to_string());
    Invalid::new(
        "batch",
        twin.unwrap_or_default(),
        "each counter of a subject just once",
    )
}
