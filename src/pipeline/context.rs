//! One request that is counted: who asks, on which plan, at what cost.

mod local;

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use http::StatusCode;

use super::Snapshot;
use super::overrides::quota_set_for;
use super::quota_names::{QuotaMetadata, QuotaNames};
use crate::batch::{Batch, Check, MAX_CHECKS};
use crate::clock::Timestamp;
use crate::decision::Decision;
use crate::error::{Invalid, StoreError};
use crate::head::RequestHead;
use crate::headers::{Label, Standing};
use crate::key::Subject;
use crate::observe::Tally;
use crate::policy::{Caller, Plan, PlanCosts, PlanRef, PlannedCheck};
use crate::quota::Quota;
use crate::store::{Overrides, Store, StoreFuture};
use crate::usage::{Outcome, Usage, Usages};
use crate::who::Identity;

/// Everything that is needed to decide a request, to settle it, and to charge it later.
///
/// While it is decided, the rules are borrowed: most requests need nothing of it afterwards, and
/// all of them would count themselves in and out at one place in memory. What goes on with a
/// request [keeps](RequestContext::keep) them.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext<R = Arc<Snapshot>> {
    rules: R,
    identity: Option<Arc<Identity>>,
    ip: Option<IpAddr>,
    endpoint: usize,
    plan: PlanRef,
    tier: usize,
    charges: PlanCosts,
    /// Quotas that were set for this caller at run time, or that hold only in this process, by
    /// entry.
    overridden: Option<Arc<Overridden>>,
    /// Whether it was decided in the memory of this process, since the store could not answer.
    local: bool,
}

/// For each entry of a plan that has one, the quota that replaces the policy's, and its label.
type Overridden = [Option<(Quota, Label)>; MAX_CHECKS];

impl<'r> RequestContext<&'r Snapshot> {
    #[inline]
    pub(super) fn new(
        rules: &'r Snapshot,
        identity: Option<Arc<Identity>>,
        ip: Option<IpAddr>,
        (endpoint, plan): (usize, PlanRef),
        head: &RequestHead<'_>,
    ) -> Self {
        let caller = Caller {
            identity: identity.as_deref(),
            ip,
        };
        let charges = rules
            .policy
            .charges(rules.policy.referred(&plan), &caller, head);
        Self {
            rules,
            identity,
            ip,
            endpoint,
            plan,
            tier: 0,
            charges,
            overridden: None,
            local: false,
        }
    }

    /// Whether rules are tried out on it.
    #[inline]
    pub(super) fn has_trials(&self) -> bool {
        !self.plan().trials.is_empty()
    }

    /// A case for each rule that is tried out on it.
    pub(super) fn trials(
        &self,
        rules: &Arc<Snapshot>,
        head: &RequestHead<'_>,
    ) -> Vec<RequestContext> {
        let trials = self.plan().trials.iter();
        let of_plan = |plan: &usize| {
            let plan = (self.endpoint, PlanRef::Compiled(*plan));
            RequestContext::new(self.rules, self.identity.clone(), self.ip, plan, head).keep(rules)
        };
        trials.map(of_plan).collect()
    }

    /// The same with rules of its own, which are those it was made with.
    pub(super) fn keep(&self, rules: &Arc<Snapshot>) -> RequestContext {
        RequestContext {
            rules: Arc::clone(rules),
            identity: self.identity.clone(),
            ip: self.ip,
            endpoint: self.endpoint,
            plan: self.plan.clone(),
            tier: self.tier,
            charges: self.charges,
            overridden: self.overridden.clone(),
            local: self.local,
        }
    }
}

impl<R: Deref<Target = Snapshot>> RequestContext<R> {
    #[inline]
    pub(super) const fn set_tier(&mut self, tier: usize) {
        self.tier = tier;
    }

    /// Sets the quotas that were set for this caller at run time and apply at wall-clock time `wall`.
    #[inline]
    pub(super) fn set_overrides(&mut self, overrides: Option<&Overrides>, wall: Timestamp) {
        if let Some(overrides) = overrides.filter(|overrides| !overrides.is_empty()) {
            self.override_with(overrides, wall);
        }
    }

    #[cold]
    fn override_with(&mut self, overrides: &Overrides, wall: Timestamp) {
        let caller = self.caller();
        let mut found = Overridden::default();
        for (index, entry) in self.entries() {
            let counter = &self.rules.policy.line(entry).counter;
            let per = &self.plan().subjects[entry.subject];
            let quota = quota_set_for(overrides, &caller, per, counter, wall);
            found[index] = quota.and_then(|quota| self.with_label(entry, quota));
        }
        self.overridden = found.iter().any(Option::is_some).then(|| Arc::new(found));
    }

    /// Another quota for an entry, with the label that callers see.
    fn with_label(&self, entry: &PlannedCheck, quota: Quota) -> Option<(Quota, Label)> {
        let caller = self.caller();
        let who = self.plan().subjects[entry.subject].who(&caller);
        let who = Some(who).filter(|who| Label::can_name(who));
        let who = who.unwrap_or(QuotaNames::UNNAMED);
        let counter = &self.rules.policy.line(entry).counter;
        Some((quota, Label::new(who, counter, &quota).ok()?))
    }

    /// What was set for an entry at run time.
    #[inline]
    fn overridden(&self, index: usize) -> Option<&(Quota, Label)> {
        self.overridden.as_ref()?[index].as_ref()
    }

    /// The quota that an entry has for this caller.
    #[inline]
    fn quota(&self, index: usize, entry: &PlannedCheck) -> &Quota {
        match self.overridden(index) {
            Some((quota, _)) => quota,
            None => self.rules.policy.line(entry).quota(self.tier),
        }
    }

    #[inline]
    pub(super) fn rules(&self) -> &Snapshot {
        &self.rules
    }

    pub(super) const fn tier(&self) -> usize {
        self.tier
    }

    #[inline]
    fn plan(&self) -> &Plan {
        self.rules.policy.referred(&self.plan)
    }

    pub(super) fn caller(&self) -> Caller<'_> {
        Caller {
            identity: self.identity.as_deref(),
            ip: self.ip,
        }
    }

    /// Whether some of it depends on the response.
    pub(super) fn is_by_outcome(&self) -> bool {
        self.plan().by_outcome
    }

    /// The entries that apply to this caller, with their places in the plan.
    #[inline]
    fn entries(&self) -> impl Iterator<Item = (usize, &PlannedCheck)> {
        let applying = self.charges.applying;
        let entries = self.plan().entries.iter().enumerate();
        entries.filter(move |(index, _)| applying >> index & 1 == 1)
    }

    /// Charges the whole of it, or nothing. One usage comes back for each entry that applies.
    pub(super) fn decide(&self, store: &dyn Store, now: Timestamp) -> StoreFuture<Usages> {
        self.with_batch(
            |index, _| Some(self.charges.costs[index]),
            |batch| store.decide(batch, now),
        )
    }

    /// Charges more for what has happened, whether there was room or not: the rule of this
    /// name, or all.
    pub(super) fn record(
        &self,
        store: &dyn Store,
        rule: Option<&str>,
        cost: u64,
        now: Timestamp,
    ) -> StoreFuture<Usages> {
        let is_meant = |entry: &PlannedCheck| {
            rule.is_none_or(|rule| *self.rules.policy.terms(entry).rule == *rule)
        };
        self.with_batch(
            |_, entry| is_meant(entry).then_some(cost),
            |batch| store.record(batch, now),
        )
    }

    /// Whether a rule of this name counts the request.
    pub(super) fn has_rule(&self, rule: &str) -> bool {
        self.entries()
            .any(|(_, entry)| *self.rules.policy.terms(entry).rule == *rule)
    }

    /// Gives back what does not count, now that the response is known. The usages in `verdict`
    /// follow.
    pub(super) fn settle(
        &self,
        verdict: &mut Usages,
        status: StatusCode,
        store: &dyn Store,
        now: Timestamp,
    ) -> Option<StoreFuture<()>> {
        let counts = |entry: &PlannedCheck| self.rules.policy.counts(self.plan(), entry, status);
        if !verdict.is_allowed() || self.entries().all(|(_, entry)| counts(entry)) {
            return None;
        }
        let charged_at = verdict.at();
        let mut settled = Usages::with_live(verdict.usages().len(), charged_at);
        for ((index, entry), usage) in self.entries().zip(verdict.usages()) {
            let used = if counts(entry) {
                usage.used()
            } else {
                usage.used().saturating_sub(self.charges.costs[index])
            };
            let quota = self.quota(index, entry);
            let reset_at = if used == 0 && quota.algorithm().is_whole_again() {
                charged_at
            } else {
                usage.reset_at()
            };
            let limit = usage.limit();
            settled.push(Usage::new(limit, used, reset_at, Outcome::Allowed));
        }
        *verdict = settled;
        Some(self.with_batch(
            |index, entry| (!counts(entry)).then_some(self.charges.costs[index]),
            |batch| store.refund(batch, charged_at, now),
        ))
    }

    /// What follows from a verdict for the whole request.
    pub(super) fn decision(&self, verdict: &Usages) -> Result<Decision, StoreError> {
        let mut order = [(0, 0); MAX_CHECKS];
        let mut count = 0;
        for (place, (index, entry)) in order.iter_mut().zip(self.entries()) {
            let window = self.quota(index, entry).window_micros();
            *place = (self.rules.policy.line(entry).rank, u64::MAX - window);
            count += 1;
        }
        let decision = Decision::new(verdict, order[..count].iter().copied())?;
        let binding = decision.binding().filter(|_| verdict.is_allowed());
        let charged = binding.and_then(|index| self.entries().nth(index));
        Ok(decision.with_charged(charged.map_or(0, |(place, _)| self.charges.costs[place])))
    }

    /// Each quota with its label and how it stands. `wall_offset` converts the store's instants to
    /// wall-clock time.
    pub(super) fn standings<'a>(
        &'a self,
        usages: &'a [Usage],
        wall_offset: i64,
    ) -> impl Iterator<Item = Standing<'a>> {
        let entries = self.entries().zip(usages);
        entries.filter_map(move |(entry, usage)| {
            let label = self.label(entry).ok()?;
            Some(Standing::new(label, usage.offset_by(wall_offset)))
        })
    }

    /// The entry that speaks for all of them, with its place in the plan.
    #[inline]
    pub(super) fn binding(&self, decision: &Decision) -> Option<(usize, &PlannedCheck)> {
        let index = decision.binding()?;
        self.entries().nth(index)
    }

    #[inline]
    pub(super) fn label(&self, (index, entry): (usize, &PlannedCheck)) -> Result<&Label, Invalid> {
        if let Some((_, label)) = self.overridden(index) {
            return Ok(label);
        }
        Ok(&self.named(entry)?.label)
    }

    /// The label of an entry whose name in the policy is known already.
    #[inline]
    pub(super) fn label_of<'a>(&'a self, index: usize, named: &'a QuotaMetadata) -> &'a Label {
        self.overridden(index)
            .map_or(&named.label, |(_, label)| label)
    }

    /// The name of an entry in the policy, and what is counted under it.
    #[inline(always)]
    pub(super) fn named(&self, entry: &PlannedCheck) -> Result<&Arc<QuotaMetadata>, Invalid> {
        let Snapshot { policy, labels, .. } = &*self.rules;
        let who = self.plan().subjects[entry.subject].who(&self.caller());
        labels.get(policy, who, entry.line, self.tier)
    }

    /// What is counted of the endpoint.
    #[inline]
    pub(super) fn endpoint(&self) -> &Tally {
        &self.rules.endpoints[self.endpoint]
    }

    /// Whether a counter of this number counts it.
    pub(super) fn counts_on(&self, counter: u64) -> bool {
        self.entries()
            .any(|(_, entry)| self.rules.policy.line(entry).counter.id() == counter)
    }

    fn check<'a>(
        &'a self,
        index: usize,
        entry: &PlannedCheck,
        subject: &'a Subject<'a>,
    ) -> Check<'a> {
        let line = self.rules.policy.line(entry);
        Check::new(subject, &line.counter)
            .with_quota(self.quota(index, entry))
            .with_rank(line.rank)
    }

    /// Puts a batch together of the entries that apply and that `cost` has a cost for.
    fn with_batch<T: Unpin + Send + 'static>(
        &self,
        cost: impl Fn(usize, &PlannedCheck) -> Option<u64>,
        call: impl FnOnce(&Batch<'_>) -> StoreFuture<T>,
    ) -> StoreFuture<T> {
        let (plan, caller) = (self.plan(), self.caller());
        let everyone = Subject::all();
        let mut subjects = [None; MAX_CHECKS];
        for (place, per) in subjects.iter_mut().zip(&*plan.subjects) {
            *place = per.subject(&caller);
        }
        let Some(first) = plan.entries.first() else {
            return with_checks(&[], call);
        };
        let mut checks = [self.check(0, first, &everyone); MAX_CHECKS];
        let mut count = 0;
        for (index, entry) in self.entries() {
            let subject = subjects.get(entry.subject).and_then(Option::as_ref);
            if let (Some(subject), Some(cost)) = (subject, cost(index, entry)) {
                checks[count] = self.check(index, entry, subject).with_cost(cost);
                count += 1;
            }
        }
        with_checks(&checks[..count], call)
    }
}

fn with_checks<T: Unpin + Send + 'static>(
    checks: &[Check<'_>],
    call: impl FnOnce(&Batch<'_>) -> StoreFuture<T>,
) -> StoreFuture<T> {
    match Batch::new(checks) {
        Ok(batch) => call(&batch),
        Err(invalid) => StoreFuture::ready(Err(StoreError::refused(invalid.to_string()))),
    }
}
