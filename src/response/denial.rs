//! Data of a rejected request: [`Denial`].

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use http::StatusCode;

use super::message;
use super::{DenialKind, RequestId, Template};
use crate::clock::Timestamp;
use crate::head::RequestHead;
use crate::headers::{QuotaUsage, retry_after_secs};
use crate::quota::Window;
use crate::usage::Outcome;

/// Data of a rejected request, as renderers get it. It does not contain the identity of the caller.
///
/// The constructors are public so that renderers can be tested; see the [module](super).
#[derive(Clone, Debug)]
pub struct Denial<'a> {
    kind: DenialKind,
    head: RequestHead<'a>,
    at: Timestamp,
    binding: Option<QuotaUsage<'a>>,
    quotas: &'a [QuotaUsage<'a>],
    retry_after: Option<Duration>,
    tier: Option<&'a str>,
    suggestion: Option<&'a str>,
    message: Option<&'a Template>,
    /// Message of a rejection without a quota.
    detail: Option<&'a str>,
    request_id: RequestId<'a>,
}

/// Details of a denial besides the binding quota.
#[derive(Clone, Copy, Default)]
pub(crate) struct DenialContext<'a> {
    /// All quotas of the request; empty if the binding one is the only one.
    pub(crate) quotas: &'a [QuotaUsage<'a>],
    pub(crate) tier: Option<&'a str>,
    pub(crate) suggestion: Option<&'a str>,
    pub(crate) message: Option<&'a Template>,
}

impl<'a> Denial<'a> {
    /// Creates a denial by a quota. `binding` is the exhausted quota with the longest wait, `at` the
    /// instant of the decision.
    #[inline]
    #[must_use]
    pub fn limited(head: RequestHead<'a>, binding: QuotaUsage<'a>, at: Timestamp) -> Self {
        Self::by_rule(head, binding, at, DenialContext::default())
    }

    /// Creates a denial by a quota with all details of its rule. The setters would move the value,
    /// which is large, once for each detail.
    #[inline]
    pub(crate) fn by_rule(
        head: RequestHead<'a>,
        binding: QuotaUsage<'a>,
        at: Timestamp,
        details: DenialContext<'a>,
    ) -> Self {
        let usage = binding.usage();
        let retry_after = match usage.outcome() {
            Outcome::ExceedsCapacity => None,
            _ => Some(usage.reset_at().duration_since(at)),
        };
        Self {
            kind: DenialKind::Limited,
            head,
            at,
            binding: Some(binding),
            quotas: details.quotas,
            retry_after,
            tier: details.tier,
            suggestion: details.suggestion,
            message: details.message,
            detail: None,
            request_id: RequestId::of(head.headers()),
        }
    }

    /// Creates a rejection because of a failed store. The client may retry after `retry_after`.
    #[must_use]
    pub fn unavailable(head: RequestHead<'a>, retry_after: Duration, at: Timestamp) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::new(DenialKind::Unavailable, head, at)
        }
    }

    /// Creates a rejection because of wrong credentials.
    #[must_use]
    pub fn unauthorized(head: RequestHead<'a>, at: Timestamp) -> Self {
        Self::new(DenialKind::Unauthorized, head, at)
    }

    /// Creates a rejection because of credentials that contradict each other.
    #[must_use]
    pub fn ambiguous_credentials(head: RequestHead<'a>, at: Timestamp) -> Self {
        Self::new(DenialKind::AmbiguousCredentials, head, at)
    }

    /// Creates a rejection of a path that has too many readings to be limited. `detail` is the message:
    /// what is wrong, and what is allowed.
    #[must_use]
    pub fn invalid_path(head: RequestHead<'a>, detail: &'a str, at: Timestamp) -> Self {
        Self {
            detail: Some(detail),
            ..Self::new(DenialKind::InvalidPath, head, at)
        }
    }

    /// Creates a rejection of a path that is too long. `detail` is the message.
    #[must_use]
    pub fn path_too_long(head: RequestHead<'a>, detail: &'a str, at: Timestamp) -> Self {
        Self {
            detail: Some(detail),
            ..Self::new(DenialKind::PathTooLong, head, at)
        }
    }

    #[inline]
    fn new(kind: DenialKind, head: RequestHead<'a>, at: Timestamp) -> Self {
        Self {
            kind,
            head,
            at,
            binding: None,
            quotas: &[],
            retry_after: None,
            tier: None,
            suggestion: None,
            message: None,
            detail: None,
            request_id: RequestId::of(head.headers()),
        }
    }

    /// Sets all quotas of the request except dry runs, including the binding one. Default: the
    /// binding one.
    #[inline]
    #[must_use]
    pub const fn with_quotas(mut self, quotas: &'a [QuotaUsage<'a>]) -> Self {
        self.quotas = quotas;
        self
    }

    /// Sets the tier whose limits applied.
    #[inline]
    #[must_use]
    pub const fn with_tier(mut self, name: &'a str) -> Self {
        self.tier = Some(name);
        self
    }

    /// Sets the suggestion of the rule.
    #[inline]
    #[must_use]
    pub const fn with_suggestion(mut self, text: &'a str) -> Self {
        self.suggestion = Some(text);
        self
    }

    /// Sets the message of the rule.
    #[inline]
    #[must_use]
    pub const fn with_message(mut self, template: &'a Template) -> Self {
        self.message = Some(template);
        self
    }

    /// Lengthens the wait by a random time of up to `max`. [`reset_at`](Self::reset_at) of a denial by
    /// a quota does not change.
    #[inline]
    #[must_use]
    pub fn with_jitter(mut self, max: Duration) -> Self {
        if !max.is_zero() {
            let jitter = random_up_to(max);
            self.retry_after = self.retry_after.map(|wait| wait.saturating_add(jitter));
        }
        self
    }

    /// Replaces the request id that was read from the head of the request.
    #[must_use]
    pub const fn with_request_id(mut self, id: RequestId<'a>) -> Self {
        self.request_id = id;
        self
    }

    /// Returns the reason.
    #[must_use]
    pub const fn kind(&self) -> DenialKind {
        self.kind
    }

    /// Returns the HTTP status: 429, 503, 401, 400 or 414.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.kind.status()
    }

    /// Returns the head of the request.
    #[must_use]
    pub const fn head(&self) -> RequestHead<'a> {
        self.head
    }

    /// Returns the instant of the decision.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns the exhausted quota with the longest wait; `None` if no quota has denied the request.
    #[must_use]
    pub const fn binding(&self) -> Option<&QuotaUsage<'a>> {
        self.binding.as_ref()
    }

    /// Returns the name of the binding quota: `user:secrets:1h`.
    #[must_use]
    pub fn policy(&self) -> Option<&'a str> {
        self.binding.map(|binding| binding.name().as_str())
    }

    /// Returns the limit of the binding quota.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.binding.map(|binding| binding.usage().limit())
    }

    /// Returns the used amount of the binding quota.
    #[must_use]
    pub fn used(&self) -> Option<u64> {
        self.binding.map(|binding| binding.usage().used())
    }

    /// Returns 0, the remaining amount in every denial.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        0
    }

    /// Returns the window of the binding quota.
    #[must_use]
    pub fn window(&self) -> Option<Window> {
        self.binding.map(|binding| binding.name().window())
    }

    /// Returns the wait in microsecond precision; `None` if waiting does not help.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns the wait in seconds, as in `Retry-After`: rounded up, at least 1.
    #[must_use]
    pub fn retry_after_secs(&self) -> Option<u64> {
        self.retry_after.map(retry_after_secs)
    }

    /// Returns when the same request would be allowed; `None` if waiting does not help.
    #[must_use]
    pub fn reset_at(&self) -> Option<Timestamp> {
        let wait = self.retry_after?;
        Some(match self.binding {
            Some(binding) => binding.usage().reset_at(),
            None => self.at.saturating_add(wait),
        })
    }

    /// Returns whether the same request can never be allowed: it costs more than the limit, or the
    /// quota is `blocked` without an end.
    #[must_use]
    pub fn can_never_succeed(&self) -> bool {
        let outcome = self.binding.map(|binding| binding.usage().outcome());
        outcome == Some(Outcome::ExceedsCapacity)
    }

    /// Returns all quotas of the request except dry runs.
    #[must_use]
    pub const fn quotas(&self) -> &[QuotaUsage<'a>] {
        match (self.quotas, &self.binding) {
            ([], Some(binding)) => std::slice::from_ref(binding),
            (several, _) => several,
        }
    }

    /// Returns the quotas that denied the request.
    pub fn violated(&self) -> impl Iterator<Item = &QuotaUsage<'a>> {
        let quotas = self.quotas().iter();
        quotas.filter(|usage| !usage.usage().is_allowed())
    }

    /// Returns the tier whose limits applied, if one is known.
    #[must_use]
    pub const fn tier(&self) -> Option<&'a str> {
        self.tier
    }

    /// Returns the suggestion of the rule.
    #[must_use]
    pub const fn suggestion(&self) -> Option<&'a str> {
        self.suggestion
    }

    /// Returns the message template of the rule.
    #[must_use]
    pub const fn template(&self) -> Option<&'a Template> {
        self.message
    }

    /// Returns the message of a rejection without a quota.
    pub(super) const fn detail(&self) -> Option<&'a str> {
        self.detail
    }

    /// Returns the message: that of the rule, or the default for the reason.
    #[must_use]
    pub fn message(&self) -> String {
        let mut text = String::with_capacity(96);
        message::write(self, &mut text);
        text
    }

    /// Returns the id of the request.
    #[must_use]
    pub const fn request_id(&self) -> &RequestId<'a> {
        &self.request_id
    }
}

/// Returns a random time of up to `max`, in whole microseconds.
#[cold]
fn random_up_to(max: Duration) -> Duration {
    let max = u64::try_from(max.as_micros()).unwrap_or(u64::MAX);
    // Each `RandomState` has other random keys.
    let random = RandomState::new().hash_one(0_u8);
    let random = (u128::from(random) * (u128::from(max) + 1)) >> u64::BITS;
    // Fits: the product is at most `max` × 2^64.
    Duration::from_micros(u64::try_from(random).unwrap_or(max))
}
