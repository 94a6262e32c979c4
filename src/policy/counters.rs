//! All counters that a policy has for one caller, on any endpoint.

use std::net::IpAddr;

use super::{Caller, CompiledQuota, Exemption, KeyBy, Policy, RuleKind};
use crate::key::{Subject, plain_label};

/// Counter of one quota of one rule, for one caller.
pub(crate) struct CounterOf<'a> {
    pub(crate) kind: RuleKind,
    pub(crate) rule: &'a str,
    pub(crate) quota: &'a CompiledQuota,
    pub(crate) key_by: &'a KeyBy,
    pub(crate) subject: Subject<'a>,
    /// The dimensions of the subject, as in policy strings: `user`, `group+user`.
    pub(crate) label: &'a str,
    /// Cost of a request. It is 1 if it depends on the request.
    pub(crate) cost: u64,
    pub(crate) dry_run: bool,
}

impl Policy {
    /// Returns the counters of a caller: those of every rule that can count one of its requests.
    pub(crate) fn counters_of<'a>(
        &'a self,
        caller: &Caller<'a>,
    ) -> impl Iterator<Item = CounterOf<'a>> + use<'a> {
        let [anonymous, authenticated] = self.about.globals;
        let (its_global, other) = if caller.is_authenticated() {
            (authenticated, anonymous)
        } else {
            (anonymous, authenticated)
        };
        let for_others = other.filter(|other| Some(*other) != its_global);
        let rules = self.about.rules.iter().enumerate();
        let caller = *caller;
        rules
            .filter(move |(number, _)| Some(*number) != for_others)
            // Only preflights count on it, and no caller waits for its preflight quota.
            .filter(|(_, about)| about.kind != RuleKind::Preflight)
            .filter_map(move |(_, about)| {
                let key_by = &about.key_by;
                let subject = key_by.applies(&caller).then(|| key_by.subject(&caller))??;
                Some((about, subject))
            })
            .flat_map(move |(about, subject)| {
                let settings = &self.rules[about.settings];
                let label = plain_label(about.key_by.label(&caller));
                let counter_of = move |quota: &'a CompiledQuota| CounterOf {
                    kind: about.kind,
                    rule: &settings.name,
                    quota,
                    key_by: &about.key_by,
                    subject,
                    label,
                    cost: settings.cost.fixed().unwrap_or(1),
                    dry_run: about.dry_run,
                };
                self.quotas[about.quotas.clone()].iter().map(counter_of)
            })
    }

    /// Returns whether all requests share the counter of the rule of that name.
    pub(crate) fn is_shared_by_all(&self, rule: &str) -> bool {
        let mut rules = self.about.rules.iter();
        rules.any(|about| {
            *self.rules[about.settings].name == *rule && about.key_by.is_shared_by_all()
        })
    }

    /// Returns [`Exemption::Network`] if clients with this IP are exempt.
    pub(crate) fn exempts_network(&self, ip: IpAddr) -> Option<Exemption> {
        self.exempt.covers(ip).then_some(Exemption::Network)
    }
}
