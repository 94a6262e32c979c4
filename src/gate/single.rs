//! The short way: one quota counts a request, the same for everybody, and nothing depends on its
//! response. That is most requests.

use std::net::IpAddr;
use std::sync::Arc;

use super::case::Case;
use super::labels::Named;
use super::refuse::Bound;
use super::{Asked, Gate, Note, Rules, of_one};
use crate::batch::Check;
use crate::clock::Timestamp;
use crate::decision::Usage;
use crate::head::RequestHead;
use crate::key::Counter;
use crate::observe::{Allowed, Tally};
use crate::policy::{Caller, PlanRef};
use crate::store::StoreFuture;
use crate::who::Identity;

/// A request that one quota counts. It is let in or turned away where that is known at once; all
/// else needs [more](Case).
pub(super) struct Single<'r> {
    pub(super) rules: &'r Arc<Rules>,
    pub(super) identity: Option<Arc<Identity>>,
    pub(super) ip: Option<IpAddr>,
    pub(super) endpoint: usize,
    pub(super) plan: usize,
    pub(super) tier: usize,
}

/// How the only quota of a request stands that it was counted by.
pub(super) struct Counted<'a> {
    pub(super) endpoint: &'a Tally,
    pub(super) named: &'a Arc<Named>,
    pub(super) counter: &'a Counter,
    pub(super) usage: Usage,
    pub(super) at: Timestamp,
}

impl<'r> Single<'r> {
    /// Everything that there is to know of it.
    fn into_case(self, head: &RequestHead<'_>) -> Case<&'r Rules> {
        let plan = (self.endpoint, PlanRef::Compiled(self.plan));
        let mut case = Case::new(self.rules, self.identity, self.ip, plan, head);
        case.set_tier(self.tier);
        case
    }
}

impl Gate {
    /// Puts the only quota of a request to the store.
    #[inline]
    pub(super) fn judge_single(
        &self,
        single: Single<'_>,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Asked {
        let Rules { policy, labels, .. } = &**single.rules;
        let plan = policy.plan(single.plan);
        let (entry, cost) = (&plan.entries[0], plan.usual.costs[0]);
        let (line, per) = (policy.line(entry), &plan.subjects[entry.subject]);
        let caller = Caller {
            identity: single.identity.as_deref(),
            ip: single.ip,
        };
        // Looked at where it lies: subjects are large.
        let subject = per.subject(&caller);
        let Some(subject) = &subject else {
            return self.uncounted();
        };
        let check = Check::new(subject, &line.counter)
            .with_quota(line.quota(single.tier))
            .with_rank(line.rank)
            .with_cost(cost);
        let (usage, at) = match self.store.decide_at_once(&check, now) {
            Ok(known) => known,
            Err(answer) => return self.judge_at_length(single, answer, head, now),
        };
        let tells_more = usage.is_allowed() && self.tells_handlers;
        let named = labels.get(policy, per.who(&caller), entry.line, single.tier);
        let (false, Ok(named)) = (tells_more, named) else {
            let answer = StoreFuture::ready(Ok((usage, at)));
            return self.judge_at_length(single, answer, head, now);
        };
        let endpoint = &*single.rules.endpoints[single.endpoint];
        if !usage.is_allowed() {
            let bound = Bound {
                rules: single.rules,
                entry,
                label: &named.label,
                policy: &named.tally,
                endpoint,
                caller,
                tier: single.tier,
            };
            return self.turn_back(&bound, (usage, at), head, now);
        }
        let counted = Counted {
            endpoint,
            named,
            counter: &line.counter,
            usage,
            at,
        };
        self.let_in(single.rules, &counted, || caller, head, now)
    }

    /// Lets a request in that one quota has counted.
    #[inline]
    pub(super) fn let_in<'a>(
        &self,
        rules: &Rules,
        counted: &Counted<'_>,
        caller: impl Fn() -> Caller<'a>,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Asked {
        let Counted {
            named, ref usage, ..
        } = *counted;
        self.heard(now);
        let allowed = Allowed {
            endpoint: counted.endpoint,
            policy: &named.tally,
            usage,
            warns: rules.policy.warns(usage),
            now,
        };
        let id = counted.counter.id();
        let counts = move |counter| counter == id;
        self.tell_allowed(&allowed, &named.label, caller, counts, head);
        let style = rules.style();
        if style.is_none() {
            return Asked::Allowed(None);
        }
        let offset = self.wall_offset();
        Asked::Noted(Note {
            named: Arc::clone(named),
            usage: usage.offset_by(offset),
            at: counted.at.offset_by(offset),
            style,
            warns: allowed.warns,
        })
    }

    /// What follows if the store has yet to answer, or if more is to be done than to say how the
    /// quota stands.
    #[inline(never)]
    pub(super) fn judge_at_length(
        &self,
        single: Single<'_>,
        answer: StoreFuture<(Usage, Timestamp)>,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Asked {
        let rules = single.rules;
        let case = single.into_case(head);
        if let Some(Ok((usage, at))) = answer.as_ready() {
            self.heard(now);
            let decision = case.decision_of_only(*usage, *at);
            return self.decided(&case, None, decision, (head, now), || case.keep(rules));
        }
        let answer = answer.map(|answer| answer.map(|(usage, at)| of_one(usage, at)));
        self.answered(&case, answer, rules, head, now)
    }
}
