//! One request: who asks, which rules count it, one decision, what is told.

mod case;
mod charge;
mod labels;
mod route;
mod tier;
mod wrongs;

use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};

use self::case::Case;
use self::labels::Labels;
use self::route::Taken;
use self::tier::Asked as TierAsked;
use self::wrongs::Wrongs;
use crate::calm::calmly;
use crate::clock::{Clock, Timestamp};
use crate::decision::{Decision, Usage, Verdict};
use crate::error::{Problems, StoreError};
use crate::head::Head;
use crate::headers::{self, HeaderStyle, Report, Standing};
use crate::identity::{Asking, Chain, ClientAddress, ClientIp, Identified, Identify};
use crate::observe::{self, Exceeded, Watch};
use crate::policy::{Exemption, OnStoreFailure, Policy};
use crate::quota::Quota;
use crate::response::{Denial, JsonEnvelope, Render, Template};
use crate::store::{Answer, Store};
use crate::tier::TierResolver;
use crate::who::Identity;

pub use self::charge::Charge;

/// How long those are told to wait who are turned away because the store is down.
const UNAVAILABLE_FOR: Duration = Duration::from_secs(1);

/// Everything that decides about requests. One for all clones of a layer.
pub(crate) struct Gate {
    rules: ArcSwap<Rules>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    client_ip: ClientIp,
    chain: Chain,
    wrongs: Wrongs,
    on_invalid: OnInvalid,
    resolver: Option<TierResolver>,
    style: HeaderStyle,
    renderer: Arc<dyn Render>,
    tells_handlers: bool,
    watch: Arc<Watch>,
}

/// What becomes of those whose credentials are wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OnInvalid {
    /// They are anonymous.
    #[default]
    Anonymous,
    /// They get a 401.
    Reject,
}

/// The parts of a gate, as its builder knows them.
pub(crate) struct Parts {
    pub(crate) policy: Policy,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) client_ip: ClientIp,
    pub(crate) chain: Chain,
    pub(crate) invalid_credentials: Quota,
    pub(crate) on_invalid: OnInvalid,
    pub(crate) resolver: Option<TierResolver>,
    pub(crate) style: HeaderStyle,
    pub(crate) renderer: Arc<dyn Render>,
    pub(crate) tells_handlers: bool,
}

/// A policy with all that follows from it. Swapped as a whole.
#[derive(Debug)]
pub(crate) struct Rules {
    policy: Policy,
    labels: Labels,
    /// One for each of the policy's terms.
    messages: Box<[Option<Template>]>,
}

/// What is known of a request after it was asked about.
pub(crate) enum Asked {
    /// It goes on, and nothing is to be done about its response.
    Pass,
    /// It goes on.
    Allowed(Box<Admission>),
    /// It is turned away with this.
    Denied(Response<Bytes>),
    /// It is not known yet.
    Pending(Box<Pending>),
}

/// A request that goes on and whose response has to be seen to.
///
/// On the heap, since it goes from hand to hand with the response: services box their futures,
/// and axum more than once.
#[derive(Debug)]
pub(crate) struct Admission {
    case: Case,
    /// What several quotas say. Of one, the decision says it all.
    verdict: Option<Box<Verdict>>,
    decision: Decision,
}

/// An answer that has to be waited for.
#[expect(clippy::large_enum_variant, reason = "it is boxed as a whole")]
pub(crate) enum Pending {
    /// For the tier first.
    Tier(Pin<Box<dyn Future<Output = Judged> + Send>>),
    /// Only for the store.
    Store(Option<Case>, Answer<Verdict>),
}

/// A case and what the store says of it.
pub(crate) struct Judged {
    case: Case,
    verdict: Result<Verdict, StoreError>,
}

impl Asked {
    fn exempt(why: Exemption, head: &Head<'_>) -> Self {
        observe::exempt(why.name(), head);
        Self::Pass
    }
}

impl Rules {
    fn new(policy: Policy) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let messages = policy
            .all_terms()
            .iter()
            .map(|terms| {
                let template = terms.message.as_deref().map(Template::parse)?;
                problems.note(template.map_err(|wrong| wrong.within(&terms.rule)))
            })
            .collect();
        problems.or(Self {
            labels: Labels::new(&policy),
            policy,
            messages,
        })
    }
}

impl Gate {
    pub(crate) fn new(parts: Parts) -> Result<Self, Problems> {
        Ok(Self {
            rules: ArcSwap::from_pointee(Rules::new(parts.policy)?),
            store: parts.store,
            clock: parts.clock,
            client_ip: parts.client_ip,
            chain: parts.chain,
            wrongs: Wrongs::new(parts.invalid_credentials)?,
            on_invalid: parts.on_invalid,
            resolver: parts.resolver,
            style: parts.style,
            renderer: parts.renderer,
            tells_handlers: parts.tells_handlers,
            watch: Arc::default(),
        })
    }

    /// Whether handlers are told of the decision.
    pub(crate) const fn tells_handlers(&self) -> bool {
        self.tells_handlers
    }

    /// Asks whether a request may go on, and charges it if so.
    #[inline]
    pub(crate) fn ask(&self, head: &Head<'_>) -> Asked {
        let rules = self.rules.load();
        let taken = rules.policy.has_routes().then(|| Taken::by(head));
        let (path, pattern) = taken.map_or(("", None), |taken| (taken.path, taken.pattern));
        // First, so that a probe of the health of the server is answered whatever it shows.
        let endpoint = match rules.policy.endpoint(head, path, pattern) {
            Ok(endpoint) => endpoint,
            Err(why) => return Asked::exempt(why, head),
        };
        let now = self.clock.now();
        let address = self.client_ip.locate(head);
        if address.is_none() {
            self.watch.no_peer_address();
        }
        let identity = match self.identify(head, address, now) {
            Ok(identity) => identity,
            Err(refused) => return Asked::Denied(*refused),
        };
        let ip = address.map(|address| address.ip());
        let plan = match rules
            .policy
            .plan_for(endpoint, head, identity.as_deref(), ip)
        {
            Ok(plan) => plan,
            Err(why) => return Asked::exempt(why, head),
        };
        let group = address.map(|address| address.group());
        let tier = self.tier_of(&rules, identity.as_ref(), now);
        let case = Case::new(&rules, identity, group, plan, head);
        match tier {
            TierAsked::Known(tier) => self.judge(&case.with_tier(tier), &rules, head, now),
            TierAsked::Pending(name) => self.judge_later(case.keep(&rules), name),
        }
    }

    /// Who asks: somebody verified, or nobody that is known. Or a refusal.
    #[inline]
    fn identify(
        &self,
        head: &Head<'_>,
        address: Option<ClientAddress>,
        now: Timestamp,
    ) -> Result<Option<Arc<Identity>>, Box<Response<Bytes>>> {
        if self.chain.is_empty() {
            return Ok(None);
        }
        let tab = self.wrongs.tab(address.map(|address| address.group()), now);
        let afford = || tab.charge();
        let asking = Asking::new(*head, address.map(|address| address.ip()), now, &afford);
        let identified = calmly(|| self.chain.identify(&asking)).unwrap_or(Identified::Absent);
        match identified {
            Identified::Known(identity) => {
                tab.forgive();
                Ok(Some(identity))
            }
            Identified::Absent => {
                tab.forgive();
                Ok(None)
            }
            // Also those count that were too wrong to be looked at closely.
            Identified::Invalid if tab.is_charged() || tab.charge() => match self.on_invalid {
                OnInvalid::Anonymous => Ok(None),
                OnInvalid::Reject => {
                    let denial = Denial::unauthorized(*head, now);
                    Err(Box::new(self.render(&denial)))
                }
            },
            Identified::Invalid | Identified::Throttled => {
                Err(Box::new(self.too_many_wrongs(head, &tab, now)))
            }
        }
    }

    #[cold]
    fn too_many_wrongs(
        &self,
        head: &Head<'_>,
        tab: &wrongs::Tab<'_>,
        now: Timestamp,
    ) -> Response<Bytes> {
        let usage = tab.denied().unwrap_or_default();
        let standing = Standing::new(self.wrongs.label(), usage);
        let denial = Denial::limited(*head, standing, now);
        let response = self.render(&denial);
        observe::exceeded(|| exceeded(&denial));
        response
    }

    /// Puts a case to the store.
    #[inline]
    fn judge(
        &self,
        case: &Case<&Rules>,
        rules: &Arc<Rules>,
        head: &Head<'_>,
        now: Timestamp,
    ) -> Asked {
        let Some(only) = case.only() else {
            let answer = case.decide(&*self.store, now);
            return self.answered(case, answer, rules, head);
        };
        let Some(answer) = case.decide_only(only, &*self.store, now) else {
            return Asked::Pass;
        };
        if let Some(Ok((usage, at))) = answer.as_ready() {
            let decision = case.decision_of_only(*usage, *at);
            return self.decided(case, None, decision, head, || case.keep(rules));
        }
        let answer = answer.map(|answer| answer.map(|(usage, at)| of_one(usage, at)));
        self.answered(case, answer, rules, head)
    }

    /// The store has answered, or will.
    fn answered(
        &self,
        case: &Case<&Rules>,
        answer: Answer<Verdict>,
        rules: &Arc<Rules>,
        head: &Head<'_>,
    ) -> Asked {
        match answer.try_ready() {
            Ok(verdict) => self.judged(case, verdict, head, || case.keep(rules)),
            Err(pending) => {
                let case = Some(case.keep(rules));
                Asked::Pending(Box::new(Pending::Store(case, pending)))
            }
        }
    }

    /// Puts a case to the store once its tier is known.
    fn judge_later(&self, case: Case, name: tier::Name) -> Asked {
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        let watch = Arc::clone(&self.watch);
        Asked::Pending(Box::new(Pending::Tier(Box::pin(async move {
            let tier = tier::number(case.rules(), name.await.as_deref(), &watch);
            let case = case.with_tier(tier);
            let answer = case.decide(&*store, clock.now());
            let verdict = answer.await;
            Judged { case, verdict }
        }))))
    }

    /// What follows from what the store has said.
    pub(crate) fn conclude(&self, judged: Judged, head: &Head<'_>) -> Asked {
        let Judged { case, verdict } = judged;
        self.judged(&case, verdict, head, || case.clone())
    }

    fn judged<R: Deref<Target = Rules>>(
        &self,
        case: &Case<R>,
        verdict: Result<Verdict, StoreError>,
        head: &Head<'_>,
        keep: impl FnOnce() -> Case,
    ) -> Asked {
        let decided = verdict.and_then(|verdict| Ok((case.decision(&verdict)?, verdict)));
        match decided {
            Ok((decision, verdict)) => self.decided(case, Some(&verdict), decision, head, keep),
            Err(error) => self.without_store(case, &error, head),
        }
    }

    /// What follows from a decision. `verdict` is what several quotas said; `keep` makes of the
    /// case what goes on with the request.
    #[inline]
    fn decided<R: Deref<Target = Rules>>(
        &self,
        case: &Case<R>,
        verdict: Option<&Verdict>,
        decision: Decision,
        head: &Head<'_>,
        keep: impl FnOnce() -> Case,
    ) -> Asked {
        if decision.is_denied() {
            return Asked::Denied(self.deny(case, verdict, decision, head));
        }
        let ends_here = self.style.is_none() && !self.tells_handlers && !case.is_by_outcome();
        if ends_here || decision.binding().is_none() {
            return Asked::Pass;
        }
        Asked::Allowed(Box::new(Admission {
            case: keep(),
            verdict: verdict.copied().map(Box::new),
            decision,
        }))
    }

    #[cold]
    fn without_store<R: Deref<Target = Rules>>(
        &self,
        case: &Case<R>,
        error: &StoreError,
        head: &Head<'_>,
    ) -> Asked {
        observe::store_failed(error);
        match case.on_store_failure() {
            OnStoreFailure::Allow => Asked::Pass,
            OnStoreFailure::Deny => {
                let denial = Denial::unavailable(*head, UNAVAILABLE_FOR, self.clock.now());
                Asked::Denied(self.render(&denial))
            }
        }
    }

    /// What those are told who are turned away.
    fn deny<R: Deref<Target = Rules>>(
        &self,
        case: &Case<R>,
        verdict: Option<&Verdict>,
        decision: Decision,
        head: &Head<'_>,
    ) -> Response<Bytes> {
        let (rules, at) = (case.rules(), decision.at());
        let bound = case.binding(&decision);
        let Some((entry, Ok(label))) = bound.map(|entry| (entry, case.label(entry))) else {
            let denial = Denial::unavailable(*head, UNAVAILABLE_FOR, at);
            return self.render(&denial);
        };
        let binding = Standing::new(label, *decision.usage());
        let several: Vec<Standing<'_>> = match verdict {
            Some(verdict) => case.standings(verdict.usages()).collect(),
            // A denial without a list is about the binding one.
            None => Vec::new(),
        };
        let mut denial = Denial::limited(*head, binding, at)
            .with_quotas(&several)
            .with_tier(case.tier_name());
        if let Some(message) = &rules.messages[entry.terms] {
            denial = denial.with_message(message);
        }
        if let Some(suggestion) = &rules.policy.terms(entry).suggestion {
            denial = denial.with_suggestion(suggestion);
        }
        let mut response = self.render(&denial);
        observe::exceeded(|| exceeded(&denial));
        response.extensions_mut().insert(decision);
        response
    }

    fn render(&self, denial: &Denial<'_>) -> Response<Bytes> {
        let rendered = calmly(|| self.renderer.respond(denial, self.style));
        let mut response = rendered.unwrap_or_else(|| JsonEnvelope.respond(denial, self.style));
        // Over HTTP/2, hyper sends the body that it is given, and a client that has asked for
        // none takes it for an error. The headers stay those of GET, the length too.
        if denial.head().method() == Method::HEAD {
            *response.body_mut() = Bytes::new();
        }
        response
    }

    /// Gives back what does not count, now that the response is known. If it has to be waited
    /// for, the answer comes back.
    #[inline]
    pub(crate) fn settle(
        &self,
        admission: &mut Admission,
        status: StatusCode,
    ) -> Option<Answer<()>> {
        let Admission {
            case,
            verdict,
            decision,
        } = admission;
        if !case.is_by_outcome() {
            return None;
        }
        let mut one = of_one(*decision.usage(), decision.at());
        let usages = verdict.as_deref_mut().unwrap_or(&mut one);
        let answer = case.settle(usages, status, &*self.store, self.clock.now())?;
        if let Ok(settled) = case.decision(usages) {
            *decision = settled;
        }
        match answer.try_ready() {
            Ok(result) => {
                settled(result);
                None
            }
            Err(pending) => Some(pending),
        }
    }

    /// Tells the caller how things stand.
    #[inline]
    pub(crate) fn annotate(&self, admission: &Admission, headers: &mut HeaderMap) {
        let Admission {
            case,
            verdict,
            decision,
        } = admission;
        if self.style.is_none() {
            return;
        }
        let Some(Ok(label)) = case.binding(decision).map(|entry| case.label(entry)) else {
            return;
        };
        let binding = Standing::new(label, *decision.usage());
        let warn = case.rules().policy.warns(decision.usage());
        let report = Report::new(binding, decision.at()).with_warning(warn);
        match verdict {
            None => headers::annotate(self.style, headers, &report, [binding]),
            Some(verdict) => {
                let quotas = case.standings(verdict.usages());
                headers::annotate(self.style, headers, &report, quotas);
            }
        }
    }
}

/// What the store says of one quota, in the form of several.
fn of_one(usage: Usage, at: Timestamp) -> Verdict {
    let mut verdict = Verdict::new(at);
    verdict.push(usage);
    verdict
}

/// What those who watch should know of a denial.
fn exceeded<'a>(denial: &'a Denial<'_>) -> Exceeded<'a> {
    Exceeded {
        head: denial.head(),
        policy: denial.policy().unwrap_or_default(),
        limit: denial.limit().unwrap_or_default(),
        used: denial.used().unwrap_or_default(),
        window: denial
            .window()
            .map_or(0, |window| window.duration().as_secs()),
        retry_after: denial.retry_after_secs(),
        request_id: denial.request_id().as_str(),
    }
}

/// A charge could not be given back: the caller has one less. That is no reason to fail.
pub(crate) fn settled(result: Result<(), StoreError>) {
    if let Err(error) = result {
        observe::store_failed(&error);
    }
}

impl Admission {
    pub(crate) const fn decision(&self) -> &Decision {
        &self.decision
    }

    /// What a handler needs to charge more later.
    pub(crate) fn charge(&self, gate: &Arc<Gate>) -> Charge {
        Charge::new(Arc::clone(gate), self.case.clone())
    }
}

impl Future for Pending {
    type Output = Judged;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Judged> {
        match self.get_mut() {
            Self::Tier(future) => future.as_mut().poll(context),
            Self::Store(case, answer) => {
                let verdict = std::task::ready!(Pin::new(answer).poll(context));
                #[expect(clippy::panic, reason = "as every future may; the alternative hangs")]
                let Some(case) = case.take() else {
                    panic!("a request was polled after it was judged");
                };
                Poll::Ready(Judged { case, verdict })
            }
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("policy", &self.rules.load().policy)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
