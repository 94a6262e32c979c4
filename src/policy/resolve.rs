//! Which endpoints a request has, and the checks that charge the rules of all of them.

use std::collections::HashSet;

use super::plan::{PlanKind, RequestChecks};
use super::route::{PathRejection, Readings, RouteMatch, RouteTarget, RoutedPath};
use super::{Exemption, Policy};
use crate::batch::{Group, MAX_CHECKS};
use crate::error::ValidationError;
use crate::head::RequestHead;

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

impl Policy {
    /// Finds the endpoints of a request, unless its route is exempt.
    #[inline]
    pub(crate) fn resolve(
        &self,
        head: &RequestHead<'_>,
        path: &RoutedPath<'_>,
    ) -> Result<Resolved, Exemption> {
        match self.routes.find(head.method(), path) {
            RouteMatch::Exempt(_) => Err(Exemption::Route),
            RouteMatch::Endpoint(endpoint) => Ok(Resolved::One(endpoint)),
            RouteMatch::Unmatched => Ok(Resolved::One(self.unmatched())),
            RouteMatch::Several(readings) => Ok(self.simplified(readings)),
            RouteMatch::Rejected(rejection) => Ok(Resolved::Rejected(rejection)),
        }
    }

    /// Returns the endpoint that statistics and metrics name for a request: of several, the first
    /// that the walk found. Literal segments are tried first.
    #[inline]
    pub(crate) fn endpoint_of(&self, resolved: &Resolved) -> usize {
        match resolved {
            Resolved::One(endpoint) => *endpoint,
            Resolved::Several(readings) => readings.endpoints[0],
            Resolved::Rejected(_) => self.unmatched(),
        }
    }

    /// Returns all endpoints of a request. Among several, also "matches no endpoint" if a reading does.
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

    /// Returns the index of "matches no endpoint".
    pub(super) const fn unmatched(&self) -> usize {
        self.by_endpoint.len() - 1
    }

    /// Replaces several readings by their only endpoint if the global rule counts it: its rules then
    /// include those of "matches no endpoint".
    #[cold]
    fn simplified(&self, readings: Box<Readings>) -> Resolved {
        match &*readings.endpoints {
            [only] if !self.about.endpoints[*only].without_global => Resolved::One(*only),
            _ => Resolved::Several(readings),
        }
    }

    /// Sets the checks of a request to these endpoints, not yet [adapted](Self::adapt) to it. `checks` has
    /// none before.
    #[inline]
    pub(crate) fn set_checks(
        &self,
        checks: &mut RequestChecks,
        resolved: &Resolved,
        kind: PlanKind,
    ) -> Result<(), PathRejection> {
        match resolved {
            Resolved::One(endpoint) => {
                checks.set(self.plan(*endpoint, kind), kind);
                Ok(())
            }
            Resolved::Rejected(rejection) => Err(*rejection),
            Resolved::Several(_) => {
                *checks = self.unite(&self.endpoints_of(resolved), kind)?;
                Ok(())
            }
        }
    }

    /// Reports routes with a plain path that has several endpoints, which are counted by more quotas
    /// than fit into a batch. A plain path with one endpoint has a plan that was checked.
    ///
    /// One path is checked for each route. A path that two routes match, neither of them with the
    /// text of the other (`/a/{x}` and `/{y}/b/` match `/a/b`), can still be rejected with 400.
    pub(super) fn check_plain_paths(&self) -> Vec<ValidationError> {
        let mut problems = Vec::new();
        for (route, target, matched) in self.routes.at_plain_paths() {
            let (RouteTarget::Endpoint(endpoint), RouteMatch::Several(readings)) =
                (target, matched)
            else {
                continue;
            };
            let endpoints = self.endpoints_of(&Resolved::Several(readings));
            // Callers with and without an identity differ in their global rule. Preflights have one
            // quota more if there is none.
            let quotas = |kind| self.live_quotas_of(&endpoints, kind);
            let most = quotas(PlanKind::Unauthenticated).max(quotas(PlanKind::Authenticated));
            let most = if most > MAX_CHECKS {
                most
            } else {
                quotas(PlanKind::Preflight)
            };
            if most > MAX_CHECKS {
                let expected = format!(
                    "at most {MAX_CHECKS} for one request: a path that ends where a wildcard \
                     begins, or before the slash of another route, is counted by every route that \
                     it can be read as"
                );
                let problem = ValidationError::new("number of quotas", most, expected);
                let problem = problem.within(&route.to_string());
                let problem = problem.at(format!("endpoints[{endpoint}].route"));
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
        problems
    }

    /// Returns the number of quotas that can deny a request of all these endpoints.
    fn live_quotas_of(&self, endpoints: &[usize], kind: PlanKind) -> usize {
        let plans = endpoints.iter().map(|endpoint| self.plan(*endpoint, kind));
        let checks = plans.flat_map(|plan| &plan.checks);
        let live = checks.filter(|check| check.group == Group::Live);
        live.map(|check| check.quota).collect::<HashSet<_>>().len()
    }
}
