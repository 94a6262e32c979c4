//! What callers are told, and those who watch.

use std::ops::Deref;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Response};

use super::context::RequestContext;
use super::denial::DenialContext;
use super::observed::path_of;
use super::{Admission, Evaluation, Rejection, RequestPipeline, Snapshot};
use crate::calm::calmly;
use crate::clock::Timestamp;
use crate::decision::Decision;
use crate::error::StoreError;
use crate::head::RequestHead;
use crate::headers::{self, HeaderStyle, Report, Standing};
use crate::observe::{Denied, Exceeded, Tally};
use crate::response::{Denial, JsonEnvelope, Render};
use crate::usage::Usages;

/// How long those are told to wait who are turned away because the store is down.
pub(super) const UNAVAILABLE_FOR: Duration = Duration::from_secs(1);

impl RequestPipeline {
    /// The store has answered. If it had failed before, it is back, unless somebody in between
    /// has answered in its place.
    #[inline]
    pub(super) fn heard(&self, now: Timestamp) {
        if self.watch.is_store_failing() {
            self.heard_again(now);
        }
    }

    #[cold]
    fn heard_again(&self, now: Timestamp) {
        if self.store.health().is_healthy() {
            self.watch.store_recovered(now);
        }
    }

    /// The store could not answer.
    #[cold]
    pub(super) fn without_store<R: Deref<Target = Snapshot> + Clone>(
        &self,
        case: &RequestContext<R>,
        error: &StoreError,
        head: &RequestHead<'_>,
        keep: impl FnOnce() -> RequestContext,
    ) -> Evaluation {
        let now = self.clock.now();
        self.watch.store_failed(error, now);
        if case.needs_store() {
            self.watch.unavailable();
            let denial = Denial::unavailable(*head, UNAVAILABLE_FOR, self.wall(now));
            return Evaluation::Denied(self.render(&denial, case.rules().style()).into());
        }
        let Some(local) = case.locally(error.kind()) else {
            return self.uncounted();
        };
        let verdict = local.decide(self.local(), now).wait();
        let decided = verdict.and_then(|verdict| Ok((local.decision(&verdict)?, verdict)));
        match decided {
            Ok((decision, verdict)) => {
                let keep = || keep().made_local(&local);
                self.conclude_decision(&local, &verdict, decision, (head, now), keep)
            }
            // Memory does not fail; if it did, that would be no reason to turn anybody away.
            Err(_) => self.uncounted(),
        }
    }

    /// What those are told who are turned away.
    pub(super) fn deny<R: Deref<Target = Snapshot>>(
        &self,
        case: &RequestContext<R>,
        verdict: Option<&Usages>,
        decision: Decision,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Rejection {
        let (rules, at) = (case.rules(), decision.at());
        let found = case.binding(&decision).and_then(|(index, entry)| {
            let named = case.named(entry).ok()?;
            Some((entry, case.label_of(index, named), named))
        });
        let Some((entry, label, named)) = found else {
            let denial = Denial::unavailable(*head, UNAVAILABLE_FOR, at);
            return self.render(&denial, rules.style()).into();
        };
        let several: Vec<Standing<'_>> = match verdict {
            Some(verdict) => {
                let offset = decision.wall_offset();
                case.standings(verdict.usages(), offset).collect()
            }
            // A denial without a list is about the binding one.
            None => Vec::new(),
        };
        let bound = DenialContext {
            rules,
            entry,
            label,
            policy: &named.tally,
            endpoint: case.endpoint(),
            caller: case.caller(),
            tier: case.tier(),
        };
        self.reject_by_quota(&bound, &several, decision, head, now)
    }

    /// Says no, and says so to those who watch.
    pub(super) fn reject_denied(
        &self,
        denial: &Denial<'_>,
        denied: &Denied<'_>,
        style: HeaderStyle,
    ) -> Response<Bytes> {
        self.watch
            .denied(denied, || exceeded(denial, denied.endpoint));
        self.render(denial, style)
    }

    pub(super) fn render(&self, denial: &Denial<'_>, style: HeaderStyle) -> Response<Bytes> {
        let rendered = calmly(|| self.renderer.respond(denial, style));
        let mut response = rendered.unwrap_or_else(|| JsonEnvelope.respond(denial, style));
        // Over HTTP/2, hyper sends the body that it is given, and a client that has asked for
        // none takes it for an error. The headers stay those of GET, the length too.
        if denial.head().method() == Method::HEAD {
            *response.body_mut() = Bytes::new();
        }
        response
    }
}

impl Admission {
    /// Tells the caller how things stand.
    #[inline]
    pub(crate) fn annotate(&self, headers: &mut HeaderMap) {
        let Admission {
            case,
            verdict,
            decision,
            ..
        } = self;
        let style = case.rules().style();
        if style.is_none() {
            return;
        }
        let Some(Ok(label)) = case.binding(decision).map(|entry| case.label(entry)) else {
            return;
        };
        let binding = Standing::new(label, *decision.usage());
        let warn = case.rules().policy.warns(decision.usage());
        let report = Report::new(binding, decision.at()).with_warning(warn);
        match verdict {
            None => headers::annotate(style, headers, &report, [binding]),
            Some(verdict) => {
                let quotas = case.standings(verdict.usages(), decision.wall_offset());
                headers::annotate(style, headers, &report, quotas);
            }
        }
    }
}

/// What those who watch should know of a denial.
pub(super) fn exceeded<'a>(denial: &'a Denial<'_>, endpoint: &'a Tally) -> Exceeded<'a> {
    let head = denial.head();
    Exceeded {
        head,
        endpoint: path_of(endpoint, &head),
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
