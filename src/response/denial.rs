//! What is known about a request that was turned away: [`Denial`].

use std::time::Duration;

use http::StatusCode;

use super::message;
use super::{RequestId, Template};
use crate::clock::Timestamp;
use crate::head::RequestHead;
use crate::headers::{QuotaUsage, retry_after_secs};
use crate::quota::Window;
use crate::usage::Outcome;

/// Why a request was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DenialKind {
    /// A limit has been reached.
    Limited,
    /// The limits could not be looked at, and the policy says to let nobody through then.
    Unavailable,
    /// The credentials are wrong, and the policy says not to take their bearer for anonymous.
    Unauthorized,
    /// The path can be read in more ways than can be limited.
    InvalidPath,
    /// The path is too long to be limited.
    PathTooLong,
    /// The credentials can be read in several ways: header lines that differ, tokens of
    /// different users, too many tokens.
    AmbiguousCredentials,
}

impl DenialKind {
    /// Returns the HTTP status: 429, 503, 401, 400 or 414.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Limited => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unauthorized | Self::AmbiguousCredentials => StatusCode::UNAUTHORIZED,
            Self::InvalidPath => StatusCode::BAD_REQUEST,
            Self::PathTooLong => StatusCode::URI_TOO_LONG,
        }
    }

    /// The code that says so to programs.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Limited => "RATE_LIMIT_EXCEEDED",
            Self::Unavailable => "RATE_LIMIT_UNAVAILABLE",
            Self::Unauthorized => "INVALID_CREDENTIALS",
            Self::InvalidPath => "INVALID_PATH",
            Self::PathTooLong => "PATH_TOO_LONG",
            Self::AmbiguousCredentials => "AMBIGUOUS_CREDENTIALS",
        }
    }
}

/// Everything that a renderer is told about a request that was turned away. Who asked is not
/// among it.
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
    /// What is wrong with the request, where no limit is.
    detail: Option<&'a str>,
    request_id: RequestId<'a>,
}

/// What the rule says that turns a request away.
#[derive(Clone, Copy, Default)]
pub(crate) struct Terms<'a> {
    /// All quotas of the request, if there are others.
    pub(crate) quotas: &'a [QuotaUsage<'a>],
    pub(crate) tier: Option<&'a str>,
    pub(crate) suggestion: Option<&'a str>,
    pub(crate) message: Option<&'a Template>,
}

impl<'a> Denial<'a> {
    /// A limit has been reached: `binding` is the violated quota with the longest wait, `at`
    /// the instant of the decision.
    #[inline]
    #[must_use]
    pub fn limited(head: RequestHead<'a>, binding: QuotaUsage<'a>, at: Timestamp) -> Self {
        Self::by_rule(head, binding, at, Terms::default())
    }

    /// The same, with everything that the rule says. In one go: it is large, and what is added to
    /// it bit by bit is moved with each of them.
    #[inline]
    pub(crate) fn by_rule(
        head: RequestHead<'a>,
        binding: QuotaUsage<'a>,
        at: Timestamp,
        terms: Terms<'a>,
    ) -> Self {
        let usage = binding.usage();
        let retry_after = match usage.outcome() {
            Outcome::Never => None,
            _ => Some(usage.reset_at().duration_since(at)),
        };
        Self {
            kind: DenialKind::Limited,
            head,
            at,
            binding: Some(binding),
            quotas: terms.quotas,
            retry_after,
            tier: terms.tier,
            suggestion: terms.suggestion,
            message: terms.message,
            detail: None,
            request_id: RequestId::of(head.headers()),
        }
    }

    /// The limits could not be looked at; the caller may try again after `retry_after`.
    #[must_use]
    pub fn unavailable(head: RequestHead<'a>, retry_after: Duration, at: Timestamp) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::new(DenialKind::Unavailable, head, at)
        }
    }

    /// The credentials are wrong.
    #[must_use]
    pub fn unauthorized(head: RequestHead<'a>, at: Timestamp) -> Self {
        Self::new(DenialKind::Unauthorized, head, at)
    }

    /// The credentials can be read in several ways.
    #[must_use]
    pub fn ambiguous_credentials(head: RequestHead<'a>, at: Timestamp) -> Self {
        Self::new(DenialKind::AmbiguousCredentials, head, at)
    }

    /// Sets the message of a request that is rejected without a limit.
    pub(super) const fn with_detail(mut self, detail: &'a str) -> Self {
        self.detail = Some(detail);
        self
    }

    #[inline]
    pub(super) fn new(kind: DenialKind, head: RequestHead<'a>, at: Timestamp) -> Self {
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

    /// All quotas of the request that callers may know of (no dry runs), the binding one
    /// included, whether they had room or not. Where this is not said, it is the only one.
    #[inline]
    #[must_use]
    pub const fn with_quotas(mut self, quotas: &'a [QuotaUsage<'a>]) -> Self {
        self.quotas = quotas;
        self
    }

    /// The tier whose limits applied.
    #[inline]
    #[must_use]
    pub const fn with_tier(mut self, name: &'a str) -> Self {
        self.tier = Some(name);
        self
    }

    /// What the rule suggests to do about it.
    #[inline]
    #[must_use]
    pub const fn with_suggestion(mut self, text: &'a str) -> Self {
        self.suggestion = Some(text);
        self
    }

    /// The rule's own message.
    #[inline]
    #[must_use]
    pub const fn with_message(mut self, template: &'a Template) -> Self {
        self.message = Some(template);
        self
    }

    /// Another request id than the one that the request's head leads to.
    #[must_use]
    pub const fn with_request_id(mut self, id: RequestId<'a>) -> Self {
        self.request_id = id;
        self
    }

    /// Why it was turned away.
    #[must_use]
    pub const fn kind(&self) -> DenialKind {
        self.kind
    }

    /// The status of the response: 429, 503, 401, 400 or 414.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.kind.status()
    }

    /// The head of the request.
    #[must_use]
    pub const fn head(&self) -> RequestHead<'a> {
        self.head
    }

    /// The instant of the decision.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// The violated quota with the longest wait, if it was a quota.
    #[must_use]
    pub const fn binding(&self) -> Option<&QuotaUsage<'a>> {
        self.binding.as_ref()
    }

    /// The name of the binding quota: `user:secrets:1h`.
    #[must_use]
    pub fn policy(&self) -> Option<&'a str> {
        self.binding.map(|binding| binding.label().as_str())
    }

    /// The binding limit.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.binding.map(|binding| binding.usage().limit())
    }

    /// What is used of it.
    #[must_use]
    pub fn used(&self) -> Option<u64> {
        self.binding.map(|binding| binding.usage().used())
    }

    /// What is left, as the denied are told: nothing.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        0
    }

    /// The window of the binding quota.
    #[must_use]
    pub fn window(&self) -> Option<Window> {
        self.binding.map(|binding| binding.label().window())
    }

    /// How long to wait, to the microsecond; `None` where waiting cannot help.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// How long to wait in seconds as the wire tells it: rounded up, never 0.
    #[must_use]
    pub fn retry_after_secs(&self) -> Option<u64> {
        self.retry_after.map(retry_after_secs)
    }

    /// When the same request would be allowed; `None` where waiting cannot help.
    #[must_use]
    pub fn reset_at(&self) -> Option<Timestamp> {
        let wait = self.retry_after?;
        Some(match self.binding {
            Some(binding) => binding.usage().reset_at(),
            None => self.at.saturating_add(wait),
        })
    }

    /// Whether the same request can never be allowed: it costs more than the limit, or
    /// everything is blocked.
    #[must_use]
    pub fn can_never_succeed(&self) -> bool {
        let outcome = self.binding.map(|binding| binding.usage().outcome());
        outcome == Some(Outcome::Never)
    }

    /// All quotas of the request that callers may know of.
    #[must_use]
    pub const fn quotas(&self) -> &[QuotaUsage<'a>] {
        match (self.quotas, &self.binding) {
            ([], Some(binding)) => std::slice::from_ref(binding),
            (several, _) => several,
        }
    }

    /// Those of them that had no room.
    pub fn violated(&self) -> impl Iterator<Item = &QuotaUsage<'a>> {
        let quotas = self.quotas().iter();
        quotas.filter(|standing| !standing.usage().is_allowed())
    }

    /// The tier whose limits applied, if one is known.
    #[must_use]
    pub const fn tier(&self) -> Option<&'a str> {
        self.tier
    }

    /// What the rule suggests to do about it.
    #[must_use]
    pub const fn suggestion(&self) -> Option<&'a str> {
        self.suggestion
    }

    /// The rule's own message, not filled in.
    #[must_use]
    pub const fn template(&self) -> Option<&'a Template> {
        self.message
    }

    /// What is wrong with the request, where no limit is.
    pub(super) const fn detail(&self) -> Option<&'a str> {
        self.detail
    }

    /// The message for people: the rule's own, or one that fits.
    #[must_use]
    pub fn message(&self) -> String {
        let mut text = String::with_capacity(96);
        message::write(self, &mut text);
        text
    }

    /// What the request is called in logs.
    #[must_use]
    pub const fn request_id(&self) -> &RequestId<'a> {
        &self.request_id
    }
}
