//! Explanation of how a policy counts a request.
//!
//! Endpoint, plan, subject, quota and cost come from the functions that evaluate requests. This
//! module makes no decision of its own, so an explanation agrees with the layer.

mod exemption;
mod explanation;
mod request;
mod serial;
mod text;

use super::about::{EndpointAbout, RuleAbout, RuleKind};
use super::exempt::Exemption;
use super::route::RoutedPath;
use super::tiers::{TierOf, TierTable};
use super::{Caller, PlanKind, PlannedCheck, Policy, RequestChecks};
use crate::head::RequestHead;
use crate::key::{Subject, plain_label, policy_name};

pub use self::explanation::{
    AppliedRule, Explanation, Scaling, SkipReason, SkippedRule, TierSource,
};
pub use self::request::ExplainRequest;

impl Policy {
    /// Returns the rules that count a request, in order, with quotas and counters, and the rules
    /// that do not count it, with reasons.
    ///
    /// No counter is charged.
    ///
    /// ```
    /// use tollgate::Identity;
    /// use tollgate::policy::{ExplainRequest, Policy, Rule, Tiers};
    ///
    /// let policy = Policy::builder()
    ///     .tiers(Tiers::new("free").tier("team", 5))
    ///     .authenticated("1000/hour")
    ///     .endpoint("GET /v1/secrets/{id}", Rule::new("500/hour").name("secrets"))
    ///     .build()?;
    ///
    /// let alice = Identity::user("alice").tier("team");
    /// let explanation = policy.explain(&ExplainRequest::new("GET /v1/secrets/42")?.identity(alice));
    ///
    /// assert_eq!(explanation.endpoint(), Some("GET /v1/secrets/{id}"));
    /// let first = &explanation.counted_by[0];
    /// assert_eq!(first.policy, "user:secrets:1h");
    /// assert_eq!(first.counter, "user=alice");
    /// assert_eq!(first.quota.amount(), 2_500);
    /// println!("{explanation}");
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    ///
    /// The explanation does not include tiers that are [looked up](crate::tier), the verification
    /// of tokens, or paths that other layers of a router rewrite.
    #[must_use]
    pub fn explain(&self, explain_request: &ExplainRequest) -> Explanation {
        Explainer::new(self, explain_request).explain()
    }

    /// Returns the effect of a tier on the quotas of a rule.
    pub(super) fn scaling(&self, rule: &RuleAbout, tier: usize) -> Scaling {
        if rule.has_tier_quotas[tier] {
            Scaling::Own
        } else if rule.unscaled {
            Scaling::Never
        } else {
            Scaling::Times(self.tiers.multiplier(tier))
        }
    }
}

/// State while a request is explained.
struct Explainer<'a> {
    policy: &'a Policy,
    explain_request: &'a ExplainRequest,
    head: RequestHead<'a>,
    routed_path: RoutedPath<'a>,
    caller: Caller<'a>,
    tier: usize,
    tier_source: TierSource,
}

impl<'a> Explainer<'a> {
    fn new(policy: &'a Policy, explain_request: &'a ExplainRequest) -> Self {
        let head = RequestHead::of(&explain_request.request);
        let (tier, tier_source) = match policy.tiers.of(explain_request.identity.as_ref()) {
            TierOf::Assigned(tier) => (tier, TierSource::Table),
            TierOf::FromIdentity(tier) => (tier, TierSource::Identity),
            TierOf::Unknown(name) => (TierTable::DEFAULT, TierSource::Unknown(name.to_owned())),
            TierOf::NotNamed | TierOf::Anonymous => (TierTable::DEFAULT, TierSource::Default),
        };
        Self {
            policy,
            explain_request,
            head,
            routed_path: RoutedPath {
                path: head.path(),
                ..RoutedPath::default()
            },
            caller: Caller {
                identity: explain_request.identity.as_ref(),
                ip: explain_request.counted_as.or(explain_request.ip),
            },
            tier,
            tier_source,
        }
    }

    fn explain(&self) -> Explanation {
        let mut explanation = Explanation {
            request: format!("{} {}", self.head.method(), self.head.uri()),
            caller: dimensions(&self.caller.subject()),
            at: self.explain_request.at,
            tier: self.policy.tiers.name(self.tier).to_owned(),
            multiplier: self.policy.tiers.multiplier(self.tier),
            tier_source: self.tier_source.clone(),
            endpoints: Vec::new(),
            rejection: None,
            exemption: None,
            exempt_because: None,
            counted_by: Vec::new(),
            not_counted_by: Vec::new(),
        };
        let resolved = self.policy.resolve(&self.head, &self.routed_path);
        let exemption = match &resolved {
            Ok(_) => self.exemption(),
            Err(why) => Some(*why),
        };
        explanation.exemption = exemption;
        explanation.exempt_because = exemption.map(|why| self.exempt_because(why));
        let Ok(resolved) = resolved else {
            self.skip_all(&[], &SkipReason::Exempt, &mut explanation);
            return explanation;
        };
        let endpoints = self.policy.endpoints_of(&resolved);
        let all = &self.policy.about.endpoints;
        let about: Vec<&EndpointAbout> = endpoints.iter().filter_map(|at| all.get(*at)).collect();
        explanation.endpoints = about.iter().map(|about| about.route.to_string()).collect();
        if exemption.is_some() {
            self.skip_all(&about, &SkipReason::Exempt, &mut explanation);
            return explanation;
        }
        let mut planned = RequestChecks::default();
        let set = self
            .policy
            .set_checks(&mut planned, &resolved, self.plan_kind());
        if let Err(rejection) = set {
            explanation.rejection = Some(rejection);
            self.skip_all(&about, &SkipReason::Rejected, &mut explanation);
        } else {
            let is_matched = about.len() == endpoints.len();
            let without_global = is_matched && about.iter().all(|about| about.without_global);
            for rule in self.candidate_rules(&about) {
                self.add_rule(rule, &planned, without_global, &mut explanation);
            }
        }
        explanation
    }

    /// Returns why the caller is exempt. The order is that of the pipeline.
    fn exemption(&self) -> Option<Exemption> {
        let Self {
            policy,
            explain_request,
            ..
        } = self;
        if explain_request
            .at
            .is_some_and(|now| policy.in_maintenance(now))
        {
            return Some(Exemption::Maintenance);
        }
        let by_head = policy.exempts(&self.head, explain_request.ip);
        by_head.or_else(|| policy.exempts_identity(self.caller.identity))
    }

    fn skip_all(&self, about: &[&EndpointAbout], why: &SkipReason, explanation: &mut Explanation) {
        for rule in self.candidate_rules(about) {
            explanation
                .not_counted_by
                .push(self.skipped_rule(rule, why.clone()));
        }
    }

    /// Returns the rules of these endpoints and the rules for all requests, in the order in which
    /// they count.
    fn candidate_rules(&self, endpoints: &[&EndpointAbout]) -> Vec<usize> {
        let about = &self.policy.about;
        let own = endpoints.iter().filter_map(|endpoint| endpoint.own);
        let categories = endpoints.iter().filter_map(|endpoint| endpoint.category);
        // The global rule for this caller comes before the other one.
        let [anonymous, authenticated] = about.globals;
        let globals = if self.caller.is_authenticated() {
            [authenticated, anonymous]
        } else {
            [anonymous, authenticated]
        };
        let preflight = about.preflight.filter(|_| self.is_preflight());
        let always_on = about.always_on.iter().copied();
        let globals = preflight.into_iter().chain(globals.into_iter().flatten());
        let all = own.chain(categories).chain(globals);
        let mut rules = Vec::new();
        for rule in all.chain(always_on) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        rules
    }

    /// Adds the quotas of a rule that count the request, or the reason why the rule does not.
    fn add_rule(
        &self,
        rule: usize,
        planned: &RequestChecks,
        without_global: bool,
        explanation: &mut Explanation,
    ) {
        let about = &self.policy.about.rules[rule];
        let is_of_rule = |check: &&PlannedCheck| about.quotas.contains(&usize::from(check.quota));
        let mut is_planned = false;
        for check in planned.checks.iter().filter(is_of_rule) {
            is_planned = true;
            let Some(applied) = self.applied_rule(about, check, planned) else {
                let dimension = about.key_by.lacking(&self.caller).unwrap_or_default();
                let lacks = SkipReason::Lacks(dimension.to_owned());
                explanation
                    .not_counted_by
                    .push(self.skipped_rule(rule, lacks));
                return;
            };
            explanation.counted_by.push(applied);
        }
        if !is_planned {
            let is_for_caller = planned.recorded.iter().any(|check| is_of_rule(&check));
            let why = match about.kind {
                RuleKind::Global if without_global => SkipReason::WithoutGlobal,
                RuleKind::Global if is_for_caller => SkipReason::Preflight,
                RuleKind::Global if self.caller.is_authenticated() => SkipReason::OnlyAnonymous,
                RuleKind::Global => SkipReason::OnlyAuthenticated,
                _ => SkipReason::Replaced,
            };
            explanation
                .not_counted_by
                .push(self.skipped_rule(rule, why));
        }
    }

    /// Returns the kind of plan that applies to the request.
    fn plan_kind(&self) -> PlanKind {
        self.policy.plan_kind(&self.caller, &self.head)
    }

    fn is_preflight(&self) -> bool {
        self.plan_kind() == PlanKind::Preflight
    }

    /// Returns how a check counts the request; `None` if it does not apply to the caller.
    fn applied_rule(
        &self,
        about: &RuleAbout,
        check: &PlannedCheck,
        planned: &RequestChecks,
    ) -> Option<AppliedRule> {
        let key_by = self.policy.key_by(check);
        if !key_by.applies(&self.caller) {
            return None;
        }
        let subject = key_by.subject(&self.caller)?;
        let label = plain_label(key_by.label(&self.caller));
        let (compiled, settings) = (self.policy.quota(check), self.policy.rule(check));
        let (quota, base) = (compiled.quota(self.tier), compiled.counter.quota());
        Some(AppliedRule {
            kind: about.kind,
            rule: settings.name.to_string(),
            policy: policy_name(label, compiled.counter.rule(), quota),
            counter: dimensions(&subject),
            quota: *quota,
            base: *base,
            scaling: self.policy.scaling(about, self.tier),
            cost: self.policy.cost_of(planned, check, &self.head),
            count: settings.count.clone(),
            dry_run: about.dry_run,
            quiet: about.quiet,
            on_store_failure: self.policy.on_store_failure(planned, check),
            message: settings.message.as_deref().map(str::to_owned),
            suggestion: settings.suggestion.as_deref().map(str::to_owned),
        })
    }

    fn skipped_rule(&self, rule: usize, why: SkipReason) -> SkippedRule {
        let about = &self.policy.about.rules[rule];
        SkippedRule {
            kind: about.kind,
            rule: self.policy.rules[about.settings].name.to_string(),
            why,
        }
    }
}

/// Returns the label of a counter: `user=alice`, `group=a, user=b`, `all callers`.
pub(crate) fn dimensions(subject: &Subject<'_>) -> String {
    subject.to_text()
}
