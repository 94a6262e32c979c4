//! Which endpoints a request has, and the plan that charges the rules of all of them.

use std::collections::HashSet;
use std::sync::Arc;

use http::StatusCode;

use super::route::{PathRejection, Readings, RouteMatch, RoutedPath, Target};
use super::rule::OnStoreFailure;
use super::{Caller, Exemption, KeyBy, Plan, PlanCosts, PlannedCheck, Policy, RuleSettings};
use crate::batch::MAX_CHECKS;
use crate::error::Invalid;
use crate::head::RequestHead;
use crate::who::Identity;

/// The endpoints of a request that is not exempt by its route.
#[derive(Clone, Debug)]
pub(crate) enum Resolved {
    /// Index of the only endpoint, or of "matches no endpoint".
    One(usize),
    /// The path has several readings. The rules of all of them are charged.
    Several(Box<Readings>),
    /// The path is rejected.
    Rejected(PathRejection),
}

/// A plan of the policy, or one that was united from several for one request.
#[derive(Clone, Debug)]
pub(crate) enum PlanRef {
    /// Index in the policy.
    Compiled(usize),
    United(Arc<Plan>),
}

impl Policy {
    /// Finds the endpoints of a request, unless its route is exempt.
    #[inline]
    pub(crate) fn resolve(
        &self,
        head: &RequestHead<'_>,
        taken: &RoutedPath<'_>,
    ) -> Result<Resolved, Exemption> {
        match self.routes.find(head.method(), taken) {
            RouteMatch::Exempt(_) => Err(Exemption::Route),
            // Also if it is a preflight: then the rule is for all methods, or for OPTIONS.
            RouteMatch::Endpoint(endpoint) => Ok(Resolved::One(endpoint)),
            RouteMatch::Unmatched if self.exempt.is_preflight(head) => Err(Exemption::Preflight),
            RouteMatch::Unmatched => Ok(Resolved::One(self.unmatched())),
            RouteMatch::Several(readings) => Ok(self.simplified(readings)),
            RouteMatch::Rejected(rejection) => Ok(Resolved::Rejected(rejection)),
        }
    }

    /// The endpoint that statistics and metrics name for a request: of several, the first that
    /// the walk found. Literal segments are tried first.
    #[inline]
    pub(crate) fn endpoint_of(&self, resolved: &Resolved) -> usize {
        match resolved {
            Resolved::One(endpoint) => *endpoint,
            Resolved::Several(readings) => readings.endpoints[0],
            Resolved::Rejected(_) => self.unmatched(),
        }
    }

    /// All endpoints of a request. Among several, also "matches no endpoint" if a reading does.
    pub(super) fn endpoints_of(&self, resolved: &Resolved) -> Vec<usize> {
        match resolved {
            Resolved::One(endpoint) => vec![*endpoint],
            Resolved::Several(readings) => {
                let unmatched = readings.is_unmatched.then_some(self.unmatched());
                readings
                    .endpoints
                    .iter()
                    .copied()
                    .chain(unmatched)
                    .collect()
            }
            Resolved::Rejected(_) => Vec::new(),
        }
    }

    /// Index of "matches no endpoint".
    pub(super) const fn unmatched(&self) -> usize {
        self.by_endpoint.len() - 1
    }

    /// One endpoint that the global rule counts has all rules of "matches no endpoint" as well.
    #[cold]
    fn simplified(&self, readings: Box<Readings>) -> Resolved {
        match &*readings.endpoints {
            [only] if !self.about.endpoints[*only].without_global => Resolved::One(*only),
            _ => Resolved::Several(readings),
        }
    }

    /// Returns the plan of a caller for these endpoints. The caller is not exempt.
    pub(crate) fn plan_of(
        &self,
        resolved: &Resolved,
        identity: Option<&Identity>,
    ) -> Result<PlanRef, PathRejection> {
        match resolved {
            Resolved::One(endpoint) => Ok(PlanRef::Compiled(self.plan_number(*endpoint, identity))),
            Resolved::Rejected(rejection) => Err(*rejection),
            Resolved::Several(_) => {
                let endpoints = self.endpoints_of(resolved);
                let plan = self.unite(&endpoints, identity);
                let plan = plan.ok_or(PathRejection::TooManyQuotas)?;
                Ok(PlanRef::United(Arc::new(plan)))
            }
        }
    }

    /// The plan behind a reference.
    #[inline]
    pub(crate) fn referred<'a>(&'a self, plan: &'a PlanRef) -> &'a Plan {
        match plan {
            PlanRef::Compiled(number) => self.plan(*number),
            PlanRef::United(plan) => plan,
        }
    }

    /// Unites the plans of several endpoints: every line once, the most specific rules first. A
    /// line that several of them charge keeps all its terms, and the strictest applies.
    ///
    /// Returns `None` at the first line that does not fit into a batch, so that each line is compared
    /// with at most 8 others. Of the dry runs, only the 8 most specific are evaluated.
    fn unite(&self, endpoints: &[usize], identity: Option<&Identity>) -> Option<Plan> {
        let mut entries: Vec<PlannedCheck> = Vec::new();
        let mut subjects: Vec<KeyBy> = Vec::new();
        let mut further_terms = Vec::new();
        let mut trials: Vec<usize> = Vec::new();
        let line_of = |trial: usize| self.plans[trial].entries.first().map(|entry| entry.line);
        for endpoint in endpoints {
            let plan = self.plan(self.plan_number(*endpoint, identity));
            for entry in &plan.entries {
                if let Some(known) = entries.iter().find(|known| known.line == entry.line) {
                    let terms = (entry.line, entry.terms);
                    if known.terms != entry.terms && !further_terms.contains(&terms) {
                        further_terms.push(terms);
                    }
                    continue;
                }
                if entries.len() == MAX_CHECKS {
                    return None;
                }
                let per = &plan.subjects[entry.subject];
                let known = subjects.iter().position(|known| known == per);
                let subject = known.unwrap_or_else(|| {
                    subjects.push(per.clone());
                    subjects.len() - 1
                });
                entries.push(PlannedCheck { subject, ..*entry });
            }
            for trial in &plan.trials {
                let line = line_of(*trial);
                if trials.iter().all(|known| line_of(*known) != line) {
                    trials.push(*trial);
                }
            }
        }
        entries.sort_by_key(|entry| self.line(entry).rank);
        trials.sort_by_key(|trial| line_of(*trial).map(|line| self.lines[line].rank));
        // A dry run never denies, so that too many of them are no reason to reject the request.
        trials.truncate(MAX_CHECKS);
        let mut plan = Plan {
            varies: subjects.iter().any(KeyBy::is_optional),
            usual: PlanCosts {
                costs: [1; MAX_CHECKS],
                applying: applying(entries.len()),
            },
            entries: entries.into(),
            subjects: subjects.into(),
            by_outcome: false,
            trials: trials.into(),
            is_single: false,
            further_terms: further_terms.into(),
        };
        let (mut by_outcome, mut by_request) = (false, false);
        let mut costs = [1; MAX_CHECKS];
        for (index, entry) in plan.entries.iter().enumerate() {
            let fixed = self
                .terms_of(&plan, entry)
                .filter_map(|terms| terms.cost.fixed());
            if let (Some(cost), Some(most)) = (costs.get_mut(index), fixed.max()) {
                *cost = most;
            }
            for terms in self.terms_of(&plan, entry) {
                by_outcome |= terms.count.is_by_outcome();
                by_request |= terms.cost.fixed().is_none();
            }
        }
        plan.by_outcome = by_outcome;
        plan.varies |= by_request;
        plan.usual.costs = costs;
        Some(plan)
    }

    /// What a request of this caller is charged on a plan.
    #[inline]
    pub(crate) fn charges(
        &self,
        plan: &Plan,
        caller: &Caller<'_>,
        head: &RequestHead<'_>,
    ) -> PlanCosts {
        if plan.varies {
            self.own_charges(plan, caller, head)
        } else {
            plan.usual
        }
    }

    fn own_charges(&self, plan: &Plan, caller: &Caller<'_>, head: &RequestHead<'_>) -> PlanCosts {
        let mut charges = plan.usual;
        charges.applying = 0;
        let costs = charges.costs.iter_mut();
        for (index, (cost, entry)) in costs.zip(&plan.entries).enumerate() {
            *cost = self.cost_of(plan, entry, head);
            let applies = plan.subjects[entry.subject].applies(caller);
            charges.applying |= u8::from(applies) << index;
        }
        charges
    }

    /// All terms of an entry: those of its plan, and those of further readings.
    fn terms_of<'a>(
        &'a self,
        plan: &'a Plan,
        entry: &'a PlannedCheck,
    ) -> impl Iterator<Item = &'a RuleSettings> {
        let further = plan.further_terms.iter();
        let further = further.filter(|(line, _)| *line == entry.line);
        std::iter::once(entry.terms)
            .chain(further.map(|(_, terms)| *terms))
            .map(|terms| &self.terms[terms])
    }

    /// What a request costs on an entry: the most of all readings.
    pub(crate) fn cost_of(&self, plan: &Plan, entry: &PlannedCheck, head: &RequestHead<'_>) -> u64 {
        let costs = self.terms_of(plan, entry).map(|terms| terms.cost.of(head));
        costs.max().unwrap_or(1)
    }

    /// Whether a response with this status counts on an entry: for any reading.
    pub(crate) fn counts(&self, plan: &Plan, entry: &PlannedCheck, status: StatusCode) -> bool {
        let mut all = self.terms_of(plan, entry);
        all.any(|terms| terms.count.includes(status))
    }

    /// What happens to an entry while the store cannot answer: the strictest of all readings.
    pub(crate) fn on_store_failure(&self, plan: &Plan, entry: &PlannedCheck) -> OnStoreFailure {
        let all = self
            .terms_of(plan, entry)
            .map(|terms| terms.on_store_failure);
        all.max_by_key(|outcome| outcome.strictness())
            .unwrap_or_default()
    }

    /// Reports routes with a plain path that has several endpoints, which are counted by more quotas
    /// than fit into a batch. A plain path with one endpoint has a plan that was checked.
    ///
    /// One path is checked for each route. A path that two routes match, neither of them with the
    /// text of the other (`/a/{x}` and `/{y}/b/` match `/a/b`), can still be rejected with 400.
    pub(super) fn check_plain_paths(&self) -> Vec<Invalid> {
        let mut problems = Vec::new();
        for (route, target, matched) in self.routes.at_plain_paths() {
            let (Target::Endpoint(endpoint), RouteMatch::Several(readings)) = (target, matched)
            else {
                continue;
            };
            let endpoints = self.endpoints_of(&Resolved::Several(readings));
            // Callers with and without an identity differ in their global rule.
            let quotas = [None, Some(&Identity::user("any"))]
                .map(|identity| self.quotas_of(&endpoints, identity));
            let most = quotas.into_iter().max().unwrap_or_default();
            if most > MAX_CHECKS {
                let expected = format!(
                    "at most {MAX_CHECKS} for one request: a path that ends where a wildcard \
                     begins, or before the slash of another route, is counted by every route that \
                     it can be read as"
                );
                let problem = Invalid::new("number of quotas", most, expected);
                let problem = problem.within(&route.to_string());
                let problem = problem.at(format!("endpoints[{endpoint}].route"));
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
        problems
    }

    /// Number of quotas that count a request of all these endpoints.
    fn quotas_of(&self, endpoints: &[usize], identity: Option<&Identity>) -> usize {
        let plans = endpoints
            .iter()
            .map(|endpoint| self.plan(self.plan_number(*endpoint, identity)));
        let lines = plans.flat_map(|plan| plan.entries.iter().map(|entry| entry.line));
        lines.collect::<HashSet<_>>().len()
    }
}

/// A bit for each of so many entries.
fn applying(entries: usize) -> u8 {
    (0..entries.min(MAX_CHECKS)).fold(0, |bits, index| bits | 1 << index)
}
