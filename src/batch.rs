//! All checks of one request, decided together.

use std::ops::Range;

use crate::error::ValidationError;
use crate::key::{Counter, Subject};
use crate::quota::Quota;

/// Maximum number of checks in one group of a batch.
pub const MAX_CHECKS: usize = 8;

/// Maximum number of checks in all groups of a batch.
pub const MAX_BATCH: usize = 24;

/// Checks of a batch that are charged together: all of them, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Group {
    /// The checks that decide about the request.
    #[default]
    Live,
    /// The checks of a rule that counts but never denies. Each number is a group of its own. Charged
    /// only if [`Live`](Self::Live) is admitted.
    DryRun(u8),
}

/// One counter to charge: subject, counter, quota and cost.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    subject: &'a Subject<'a>,
    counter: &'a Counter,
    quota: &'a Quota,
    cost: u64,
    group: Group,
}

impl<'a> Check<'a> {
    /// Returns a check with cost 1 and the counter's own quota.
    #[must_use]
    pub const fn new(subject: &'a Subject<'a>, counter: &'a Counter) -> Self {
        Self {
            subject,
            counter,
            quota: counter.quota(),
            cost: 1,
            group: Group::Live,
        }
    }

    /// Sets the cost. Default: 1. A check with cost 0 charges nothing and has room unless the limit is
    /// exceeded.
    #[must_use]
    pub const fn with_cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// Sets a quota with another amount or burst than the counter's own (a tier, an override). Window and
    /// algorithm must be the counter's.
    #[must_use]
    pub const fn with_quota(mut self, quota: &'a Quota) -> Self {
        self.quota = quota;
        self
    }

    /// Sets the group. Default: [`Group::Live`].
    #[must_use]
    pub const fn with_group(mut self, group: Group) -> Self {
        self.group = group;
        self
    }

    /// Returns the group.
    #[must_use]
    pub const fn group(&self) -> Group {
        self.group
    }

    /// Returns the subject.
    #[must_use]
    pub const fn subject(&self) -> &'a Subject<'a> {
        self.subject
    }

    /// Returns the counter.
    #[must_use]
    pub const fn counter(&self) -> &'a Counter {
        self.counter
    }

    /// Returns the quota that applies.
    #[must_use]
    pub const fn quota(&self) -> &'a Quota {
        self.quota
    }

    /// Returns the cost.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Returns whether the quota has the window and the algorithm of the counter.
    #[inline]
    pub(crate) fn is_consistent(&self) -> bool {
        let (own, other) = (self.counter.quota(), self.quota);
        // `blocked` and `unlimited` have no window: they fit each counter.
        std::ptr::eq(own, other)
            || other.counts_nothing()
            || (own.window() == other.window()
                && own.algorithm() == other.algorithm()
                && own.buckets() == other.buckets())
    }
}

/// Checks of one request, decided at one instant. Each [group](Group) is charged whole or not at all.
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
/// It borrows its checks, usually from the stack.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    checks: &'a [Check<'a>],
}

impl<'a> Batch<'a> {
    /// Returns a batch of these checks. A batch without checks is always allowed.
    ///
    /// # Errors
    ///
    /// Rejects more than [`MAX_CHECKS`] checks in a group or [`MAX_BATCH`] in all, checks that are not
    /// sorted by group, a counter of a subject that occurs twice, and a quota whose window or algorithm
    /// differs from its counter's.
    #[inline]
    pub fn new(checks: &'a [Check<'a>]) -> Result<Self, ValidationError> {
        match problem_of(checks) {
            None => Ok(Self { checks }),
            Some(problem) => Err(problem),
        }
    }

    /// Returns a batch of checks that a compiled policy or a limiter prescribes. The compiler has
    /// validated them.
    #[inline]
    pub(crate) fn from_plan(checks: &'a [Check<'a>]) -> Self {
        debug_assert!(problem_of(checks).is_none(), "{:?}", problem_of(checks));
        Self { checks }
    }

    /// Returns the checks.
    #[inline]
    #[must_use]
    pub const fn checks(&self) -> &'a [Check<'a>] {
        self.checks
    }

    /// Returns the groups in order, each with the indexes of its checks.
    pub fn groups(&self) -> impl Iterator<Item = (Group, Range<usize>)> {
        let mut from = 0;
        self.checks
            .chunk_by(|one, next| one.group == next.group)
            .map(move |checks| {
                let range = from..from + checks.len();
                from = range.end;
                (checks[0].group, range)
            })
    }

    /// Returns the number of checks in the group [`Live`](Group::Live), which come first.
    #[inline]
    pub(crate) fn live_len(&self) -> usize {
        // Most batches have no other group.
        match self.checks.last() {
            Some(last) if last.group != Group::Live => self
                .checks
                .partition_point(|check| check.group == Group::Live),
            _ => self.checks.len(),
        }
    }
}

/// Returns the first check whose counter and subject occur before it.
fn first_duplicate<'c, 'a>(checks: &'c [Check<'a>]) -> Option<&'c Check<'a>> {
    let is_same = |check: &Check<'_>, other: &Check<'_>| {
        check.counter.id() == other.counter.id() && check.subject == other.subject
    };
    let before = |(index, check): &(usize, &Check<'_>)| {
        checks[..*index].iter().any(|other| is_same(check, other))
    };
    checks
        .iter()
        .enumerate()
        .find(before)
        .map(|(_, check)| check)
}

/// Returns the first problem of a batch.
fn problem_of(checks: &[Check<'_>]) -> Option<ValidationError> {
    let fits = match checks {
        [] => true,
        [only] => only.is_consistent(),
        several => {
            several.len() <= MAX_BATCH
                && several.is_sorted_by_key(|check| check.group)
                && several
                    .chunk_by(|one, next| one.group == next.group)
                    .all(|group| group.len() <= MAX_CHECKS)
                && several.iter().all(Check::is_consistent)
                && first_duplicate(several).is_none()
        }
    };
    (!fits).then(|| describe_problem(checks))
}

#[cold]
fn describe_problem(checks: &[Check<'_>]) -> ValidationError {
    let too_many = checks.len() > MAX_BATCH;
    let mut groups = checks.chunk_by(|one, next| one.group == next.group);
    if too_many || groups.any(|group| group.len() > MAX_CHECKS) {
        let found = format!("{} checks", checks.len());
        let expected = format!("at most {MAX_CHECKS} in a group and {MAX_BATCH} for one request");
        return ValidationError::new("batch", found, expected);
    }
    if !checks.is_sorted_by_key(|check| check.group) {
        return ValidationError::new("batch", "groups out of order", "checks sorted by group");
    }
    if let Some(check) = checks.iter().find(|check| !check.is_consistent()) {
        let own = check.counter.quota();
        let expected = format!("the window and algorithm of its counter, `{own}`");
        return ValidationError::new("quota of a check", check.quota, expected);
    }
    let duplicate = first_duplicate(checks).map(|check| check.counter.to_string());
    ValidationError::new(
        "batch",
        duplicate.unwrap_or_default(),
        "each counter of a subject once",
    )
}
