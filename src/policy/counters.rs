//! Every counter that a policy has for one caller, whatever they ask for.

use std::net::IpAddr;

use super::cost::Cost;
use super::{Caller, CompiledQuota, Exemption, KeyBy, Policy, RuleKind};
use crate::key::{MAX_WHO, Subject, is_plain};

/// One quota of one rule, for one caller.
pub(crate) struct CounterOf<'a> {
    pub(crate) kind: RuleKind,
    pub(crate) rule: &'a str,
    pub(crate) line: &'a CompiledQuota,
    pub(crate) per: &'a KeyBy,
    pub(crate) subject: Subject<'a>,
    /// Who that is, as policy strings say it.
    pub(crate) who: &'a str,
    /// What a request costs, as far as that is known without one.
    pub(crate) cost: u64,
    pub(crate) dry_run: bool,
}

impl Policy {
    /// All counters of this caller: of every rule that could count one of their requests.
    pub(crate) fn counters_of<'a>(
        &'a self,
        caller: &Caller<'a>,
    ) -> impl Iterator<Item = CounterOf<'a>> {
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
            .filter_map(move |(_, about)| {
                let per = &about.per;
                let subject = per.applies(&caller).then(|| per.subject(&caller))??;
                Some((about, subject))
            })
            .flat_map(move |(about, subject)| {
                let terms = &self.terms[about.terms];
                let who = Some(about.per.who(&caller)).filter(|who| is_plain(who, MAX_WHO));
                let cost = match terms.cost {
                    Cost::Fixed(cost) => cost,
                    Cost::Of(_) => 1,
                };
                let of_line = move |line: &'a CompiledQuota| CounterOf {
                    kind: about.kind,
                    rule: &terms.rule,
                    line,
                    per: &about.per,
                    subject,
                    who: who.unwrap_or("caller"),
                    cost,
                    dry_run: about.dry_run,
                };
                self.lines[about.lines.clone()].iter().map(of_line)
            })
    }

    /// Whether clients at an address are exempt.
    pub(crate) fn exempts_network(&self, ip: IpAddr) -> Option<Exemption> {
        let mut networks = self.exempt.networks.iter();
        let is_exempt = networks.any(|network| network.contains(&ip));
        is_exempt.then_some(Exemption::Network)
    }
}
