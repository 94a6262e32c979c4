//! Plans: the checks that a compiled policy prescribes for one kind of request.

use http::StatusCode;
use smallvec::SmallVec;

use super::route::PathRejection;
use super::rule::OnStoreFailure;
use super::{Caller, Policy, RuleSettings};
use crate::batch::{Group, MAX_BATCH, MAX_CHECKS};
use crate::decision::QUIET;
use crate::head::RequestHead;

/// The checks of an endpoint for one [kind](PlanKind) of request.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Sorted by group; the most specific rules first.
    pub(crate) checks: Box<[PlannedCheck]>,
    /// Checks that are charged after a response without CORS headers. Only plans of preflights have
    /// any.
    pub(crate) recorded: Box<[PlannedCheck]>,
    /// Whether costs, or the checks that apply, depend on the request.
    pub(crate) varies: bool,
    /// Whether charges depend on the response.
    pub(crate) by_outcome: bool,
}

/// One counter to charge: indexes into the policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedCheck {
    pub(crate) quota: u16,
    pub(crate) rule: u16,
    pub(crate) key_by: u16,
    pub(crate) group: Group,
    pub(crate) cost: u64,
}

/// Requests to one endpoint that have the same plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PlanKind {
    Unauthenticated,
    Authenticated,
    Preflight,
}

impl PlanKind {
    pub(crate) const COUNT: usize = 3;

    /// In the order of the plans of an endpoint.
    #[cfg(feature = "metrics")]
    const ALL: [Self; Self::COUNT] = [Self::Unauthenticated, Self::Authenticated, Self::Preflight];
}

/// The checks of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestChecks {
    pub(crate) checks: SmallVec<[PlannedCheck; MAX_CHECKS]>,
    /// See [`Plan::recorded`].
    pub(crate) recorded: Vec<PlannedCheck>,
    /// Further rules of a quota that several readings of a path charge: quota, rule.
    further_rules: Vec<(u16, u16)>,
    varies: bool,
    pub(crate) by_outcome: bool,
    pub(crate) is_preflight: bool,
}

impl RequestChecks {
    /// Sets the checks of a plan. There are none before.
    #[inline]
    pub(super) fn set(&mut self, plan: &Plan, kind: PlanKind) {
        self.checks.extend_from_slice(&plan.checks);
        self.recorded.extend_from_slice(&plan.recorded);
        self.varies = plan.varies;
        self.by_outcome = plan.by_outcome;
        self.is_preflight = kind == PlanKind::Preflight;
    }

    /// Adds the checks of a further reading of the path. Each quota is charged once.
    fn add_live(&mut self, checks: &[PlannedCheck]) -> Result<(), PathRejection> {
        for check in checks {
            let known = self.checks.iter().find(|known| known.quota == check.quota);
            if let Some(known) = known {
                let rule = (check.quota, check.rule);
                if known.rule != check.rule && !self.further_rules.contains(&rule) {
                    self.further_rules.push(rule);
                }
            } else if self.checks.len() == MAX_CHECKS {
                return Err(PathRejection::TooManyQuotas);
            } else {
                self.checks.push(*check);
            }
        }
        Ok(())
    }
}

impl Policy {
    /// Returns the checks of all plans, with the kind of request that they are for. A check that
    /// several plans have is returned several times.
    #[cfg(feature = "metrics")]
    pub(crate) fn all_checks(&self) -> impl Iterator<Item = (PlanKind, &PlannedCheck)> {
        let kinds = PlanKind::ALL.into_iter();
        let plans = self
            .by_endpoint
            .iter()
            .flat_map(move |plans| kinds.clone().zip(plans));
        let checks = |(kind, plan): (PlanKind, &usize)| {
            let Plan {
                checks, recorded, ..
            } = &self.plans[*plan];
            checks
                .iter()
                .chain(recorded)
                .map(move |check| (kind, check))
        };
        plans.flat_map(checks)
    }

    #[inline]
    pub(super) fn plan(&self, endpoint: usize, kind: PlanKind) -> &Plan {
        &self.plans[self.by_endpoint[endpoint][kind as usize]]
    }

    /// Merges the plans of several endpoints: every quota once, the most specific rules first. A
    /// quota that several of them charge keeps all its rules, and the strictest applies.
    ///
    /// Rejects the path at the first live check that does not fit into a batch, so that each check
    /// is compared with at most 8 others. Dry runs that do not fit are left out, since they never
    /// deny: the least specific first.
    pub(super) fn unite(
        &self,
        endpoints: &[usize],
        kind: PlanKind,
    ) -> Result<RequestChecks, PathRejection> {
        let mut united = RequestChecks {
            varies: true,
            is_preflight: kind == PlanKind::Preflight,
            ..RequestChecks::default()
        };
        let mut dry_runs: Vec<&[PlannedCheck]> = Vec::new();
        for endpoint in endpoints {
            let plan = self.plan(*endpoint, kind);
            united.by_outcome |= plan.by_outcome;
            for group in plan.checks.chunk_by(|one, next| one.group == next.group) {
                if group[0].group == Group::Live {
                    united.add_live(group)?;
                } else if dry_runs
                    .iter()
                    .all(|known| known[0].quota != group[0].quota)
                {
                    dry_runs.push(group);
                }
            }
            if united.recorded.is_empty() {
                united.recorded.extend_from_slice(&plan.recorded);
            }
        }
        // Without `QUIET`: it concerns what is reported, not how specific a rule is.
        let rank = |check: &PlannedCheck| self.quota(check).rank & !QUIET;
        united.checks.sort_by_key(rank);
        dry_runs.sort_by_key(|group| rank(&group[0]));
        for (number, checks) in (0..).zip(dry_runs) {
            if united.checks.len() + checks.len() > MAX_BATCH {
                break;
            }
            let group = Group::DryRun(number);
            let checks = checks.iter().map(|check| PlannedCheck { group, ..*check });
            united.checks.extend(checks);
        }
        Ok(united)
    }

    /// Sets the costs of a request, and removes the checks that do not apply to its caller.
    #[inline]
    pub(crate) fn adapt(
        &self,
        planned: &mut RequestChecks,
        caller: &Caller<'_>,
        head: &RequestHead<'_>,
    ) {
        if planned.varies {
            self.adapt_to(planned, caller, head);
        }
    }

    fn adapt_to(&self, planned: &mut RequestChecks, caller: &Caller<'_>, head: &RequestHead<'_>) {
        let applies = |check: &mut PlannedCheck| self.key_by(check).applies(caller);
        planned.checks.retain(applies);
        planned.recorded.retain_mut(applies);
        let further = &planned.further_rules;
        for check in planned.checks.iter_mut().chain(&mut planned.recorded) {
            check.cost = max_cost(self.all_rules(further, check), head);
        }
    }

    /// Returns the rule of a check, and those of further readings.
    fn all_rules<'a>(
        &'a self,
        further: &'a [(u16, u16)],
        check: &PlannedCheck,
    ) -> impl Iterator<Item = &'a RuleSettings> {
        let quota = check.quota;
        let further = further.iter().filter(move |(of, _)| *of == quota);
        std::iter::once(check.rule)
            .chain(further.map(|(_, rule)| *rule))
            .map(|rule| &self.rules[usize::from(rule)])
    }

    /// Returns the cost of a request on a check: the highest of all readings.
    pub(super) fn cost_of(
        &self,
        planned: &RequestChecks,
        check: &PlannedCheck,
        head: &RequestHead<'_>,
    ) -> u64 {
        max_cost(self.all_rules(&planned.further_rules, check), head)
    }

    /// Returns whether a response with this status counts on a check: for any reading.
    pub(crate) fn counts(
        &self,
        planned: &RequestChecks,
        check: &PlannedCheck,
        status: StatusCode,
    ) -> bool {
        let mut rules = self.all_rules(&planned.further_rules, check);
        rules.any(|rule| rule.count.includes(status))
    }

    /// Returns what happens to a check while the store is unavailable: the strictest of all readings.
    pub(crate) fn on_store_failure(
        &self,
        planned: &RequestChecks,
        check: &PlannedCheck,
    ) -> OnStoreFailure {
        let rules = self.all_rules(&planned.further_rules, check);
        rules
            .map(|rule| rule.on_store_failure)
            .max_by_key(|outcome| outcome.strictness())
            .unwrap_or_default()
    }
}

fn max_cost<'a>(rules: impl Iterator<Item = &'a RuleSettings>, head: &RequestHead<'_>) -> u64 {
    rules.map(|rule| rule.cost.of(head)).max().unwrap_or(1)
}
