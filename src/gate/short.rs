//! The shortest way: all requests are counted alike, each by the address that it comes from.
//!
//! That is the policy which is one quota and nothing else, with nobody who could be known by more
//! than an address. What there is to find out of a request then is that, and the rest was found
//! out when the rules were made.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, OnceLock};

use super::labels::Named;
use super::refuse::Bound;
use super::single::{Counted, Single};
use super::{Asked, Gate, Rules, is_unset};
use crate::batch::Check;
use crate::clock::Timestamp;
use crate::decision::Usage;
use crate::head::RequestHead;
use crate::key::{Counter, Subject, Value};
use crate::observe::Tally;
use crate::policy::{Caller, Per, Policy, TierTable};
use crate::quota::Quota;
use crate::store::{SharedStore, StoreFuture};
use crate::who::Identity;

/// What counts every request.
#[derive(Debug)]
pub(super) struct Short {
    plan: usize,
    line: usize,
    counter: Counter,
    quota: Quota,
    rank: u8,
    cost: u64,
    endpoint: Arc<Tally>,
    /// Found when it is first needed.
    named: OnceLock<Arc<Named>>,
}

impl Short {
    /// `endpoint` is what is counted of requests that match no endpoint. None if some requests
    /// are counted otherwise than others.
    pub(super) fn new(policy: &Policy, endpoint: &Arc<Tally>) -> Option<Self> {
        let number = policy.plan_for_all()?;
        let plan = policy.plan(number);
        let entry = plan.entries.first().filter(|_| plan.is_single)?;
        let line = policy.line(entry);
        is_by_address(&plan.subjects[entry.subject]).then(|| Self {
            plan: number,
            line: entry.line,
            counter: line.counter.clone(),
            quota: *line.quota(TierTable::DEFAULT),
            rank: line.rank,
            cost: plan.usual.costs[0],
            endpoint: Arc::clone(endpoint),
            named: OnceLock::new(),
        })
    }

    #[inline]
    fn named(&self, rules: &Rules) -> Option<&Arc<Named>> {
        self.named.get().or_else(|| self.find_name(rules))
    }

    #[inline(always)]
    fn counted<'a>(&'a self, named: &'a Arc<Named>, usage: Usage, at: Timestamp) -> Counted<'a> {
        Counted {
            endpoint: &self.endpoint,
            named,
            counter: &self.counter,
            usage,
            at,
        }
    }

    #[cold]
    fn find_name(&self, rules: &Rules) -> Option<&Arc<Named>> {
        let (policy, tier) = (&rules.policy, TierTable::DEFAULT);
        let named = rules.labels.get(policy, Identity::IP, self.line, tier);
        let named = named.ok()?;
        Some(self.named.get_or_init(|| Arc::clone(named)))
    }
}

/// Who asks, and what counts it.
struct Request<'a> {
    rules: &'a Arc<Rules>,
    ip: IpAddr,
    named: &'a Arc<Named>,
}

/// Whether those who are not known are counted by their addresses.
fn is_by_address(per: &Per) -> bool {
    let ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let caller = anonymous(ip);
    per.subject(&caller) == Some(of_address(ip)) && per.who(&caller) == Identity::IP
}

#[inline]
const fn anonymous(ip: IpAddr) -> Caller<'static> {
    Caller {
        identity: None,
        ip: Some(ip),
    }
}

#[inline]
const fn of_address(ip: IpAddr) -> Subject<'static> {
    Subject::named((Identity::IP, Value::Address(ip)))
}

impl Gate {
    /// Asks whether a request may go on, and charges it if so.
    #[inline]
    pub(super) fn ask_short(
        &self,
        short: &Short,
        rules: &Arc<Rules>,
        head: &RequestHead<'_>,
    ) -> Asked {
        let needs_more = Policy::may_be_preflight(head) || self.tells_handlers;
        let ip = rules.client_ip().group_of_peer(head);
        let (false, Some(ip), Some(named)) = (needs_more, ip, short.named(rules)) else {
            return self.ask_at_length(rules, head);
        };
        let memory = match &self.store {
            SharedStore::Memory(memory) if memory.has_no_overrides() => Some(memory),
            SharedStore::Other(other) if is_unset(other.overrides()) => None,
            _ => return self.ask_at_length(rules, head),
        };
        let now = self.clock.now();
        if self.watch.is_due(now) {
            self.look(now);
        }
        let charge = (&short.counter, &short.quota, short.cost);
        let known = memory.and_then(|memory| memory.charge_address(Identity::IP, ip, charge, now));
        match known {
            Some((usage, at)) if usage.is_allowed() => {
                let counted = short.counted(named, usage, at);
                self.let_in(rules, &counted, || anonymous(ip), head, now)
            }
            _ => {
                let request = Request { rules, ip, named };
                self.ask_less_shortly(short, &request, known, head, now)
            }
        }
    }

    /// What follows if there is no room, or if the store has no shorter way.
    #[inline(never)]
    fn ask_less_shortly(
        &self,
        short: &Short,
        Request { rules, ip, named }: &Request<'_>,
        known: Option<(Usage, Timestamp)>,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Asked {
        let known = match known {
            Some(known) => Ok(known),
            None => self.decide_short(short, *ip, now),
        };
        match known {
            Ok((usage, at)) if usage.is_allowed() => {
                let counted = short.counted(named, usage, at);
                self.let_in(rules, &counted, || anonymous(*ip), head, now)
            }
            Ok(refused) => {
                let bound = Bound {
                    rules,
                    entry: &rules.policy.plan(short.plan).entries[0],
                    label: &named.label,
                    policy: &named.tally,
                    endpoint: &short.endpoint,
                    caller: anonymous(*ip),
                    tier: TierTable::DEFAULT,
                };
                self.turn_back(&bound, refused, head, now)
            }
            Err(answer) => {
                let single = Single {
                    rules,
                    identity: None,
                    ip: Some(*ip),
                    endpoint: rules.endpoints.len() - 1,
                    plan: short.plan,
                    tier: TierTable::DEFAULT,
                };
                self.judge_at_length(single, answer, head, now)
            }
        }
    }

    /// Asks a store that has no shorter way.
    fn decide_short(
        &self,
        short: &Short,
        ip: IpAddr,
        now: Timestamp,
    ) -> Result<(Usage, Timestamp), StoreFuture<(Usage, Timestamp)>> {
        let subject = of_address(ip);
        let check = Check::new(&subject, &short.counter)
            .with_quota(&short.quota)
            .with_rank(short.rank)
            .with_cost(short.cost);
        self.store.decide_at_once(&check, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::{Watch, Watching};
    use crate::policy::{Count, IntoPolicy, PolicyBuilder, Rule};

    fn is_short(policy: impl IntoPolicy) -> bool {
        let watch = Watch::new(Watching::default(), Timestamp::EPOCH);
        Short::new(&policy.into_policy().unwrap(), &watch.endpoints().of("*")).is_some()
    }

    fn everyone() -> PolicyBuilder {
        Policy::builder().everyone("100/hour")
    }

    #[test]
    fn one_quota_per_address_is_short() {
        assert!(is_short("100/hour"));
        assert!(is_short(Rule::new("100/hour").per(["ip"]).cost(3)));
        assert!(is_short(Rule::new("100/hour").per(["user"])));
        assert!(is_short(
            everyone()
                .exempt_role("admin")
                .exempt_subject("user", "ada")
        ));
    }

    #[test]
    fn whatever_makes_a_difference_between_requests_is_not() {
        assert!(!is_short(Rule::new("100/hour").and("1000/day")));
        assert!(!is_short(Rule::new("100/hour").per([])));
        assert!(!is_short(Rule::new("100/hour").cost_of(|_| 2)));
        assert!(!is_short(Rule::new("100/hour").count(Count::failure())));
        assert!(!is_short(
            everyone().rule("new", Rule::new("9/hour").dry_run())
        ));
        assert!(!is_short(everyone().endpoint("GET /", "9/hour")));
        assert!(!is_short(everyone().exempt_route("GET /health")));
        assert!(!is_short(everyone().exempt_network("10.0.0.0/8")));
        assert!(!is_short(everyone().exempt_when(|_| false)));
        assert!(!is_short(
            everyone().maintenance_until(Timestamp::from_secs(1))
        ));
    }
}
