//! The trait of identity sources: [`Identify`], its context and its result.

#![cfg_attr(
    not(feature = "jwt"),
    expect(dead_code, reason = "only the source of tokens registers any")
)]

use std::cell::RefCell;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::invalid_reason::InvalidReason;
use crate::clock::Timestamp;
use crate::head::RequestHead;
use crate::identity_types::Identity;

/// Source of identities: finds the caller of a request from its head.
///
/// Sources form a [chain](super::Chain): the first that accepts a credential applies.
pub trait Identify: fmt::Debug + Send + Sync + 'static {
    /// Returns what this source finds in the request.
    fn identify(&self, context: &IdentifyContext<'_>) -> Identified;

    /// Whether this source reads tokens, of which one request may carry several. Default:
    /// `false`.
    ///
    /// After a token source has returned an [authenticated](Identity::is_authenticated) identity, a
    /// chain skips the other sources that follow and calls the token sources: a request with tokens
    /// of different users is [ambiguous](Identified::Ambiguous).
    fn is_token_source(&self) -> bool {
        false
    }

    /// Returns the usual [primary dimension](Identity::primary) of the identities of this source.
    /// Metrics of quotas per caller exist with 0 for this dimension before the first request.
    /// Default: `user`.
    fn dimension(&self) -> &str {
        Identity::USER
    }

    /// Returns what this source reads, for operators: ``API key in `x-api-key` ``. Contains no secret.
    /// Default: `custom source`.
    fn description(&self) -> String {
        "custom source".to_owned()
    }
}

/// Result of a source.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Identified {
    /// The request has no credential for this source.
    Absent,
    /// A verified identity. It may be [unauthenticated](Identity::unauthenticated): then a later
    /// source that authenticates the caller applies.
    Known(Arc<Identity>),
    /// A credential that is not accepted. It never selects a counter.
    Invalid(InvalidReason),
    /// A verified identity without a subject, and beside it a credential that is not accepted.
    ///
    /// Tenant and roles of the identity apply. Otherwise the request is treated as
    /// [`Invalid`](Identified::Invalid): it is charged, and rejected if invalid credentials are. A
    /// token without a user may be public, and wrong tokens must not pass behind it.
    PartlyInvalid(Arc<Identity>, InvalidReason),
    /// Credentials that can be read in several ways: header lines that differ, tokens of
    /// different users, too many tokens. The application may read them in another way, so the
    /// request gets 401 with the code `AMBIGUOUS_CREDENTIALS`.
    Ambiguous,
    /// A credential over the size limit. It is not verified; the request gets 401 with the code
    /// `INVALID_CREDENTIALS`.
    TooLarge,
}

impl Identified {
    /// Returns [`Known`](Self::Known), or [`Invalid`](Self::Invalid) if the primary dimension is
    /// empty, because all such callers would share one counter.
    #[must_use]
    pub fn known(identity: Identity) -> Self {
        Self::known_shared(Arc::new(identity))
    }

    pub(super) fn known_shared(identity: Arc<Identity>) -> Self {
        if has_empty_subject(&identity) {
            return Self::Invalid(InvalidReason::Custom);
        }
        Self::Known(identity)
    }
}

/// Whether the primary dimension has no value.
pub(super) fn has_empty_subject(identity: &Identity) -> bool {
    identity
        .primary()
        .is_some_and(|(_, value)| value.is_empty())
}

/// A shared source.
impl<I: Identify + ?Sized> Identify for Arc<I> {
    fn identify(&self, context: &IdentifyContext<'_>) -> Identified {
        (**self).identify(context)
    }

    fn is_token_source(&self) -> bool {
        (**self).is_token_source()
    }

    fn dimension(&self) -> &str {
        (**self).dimension()
    }

    fn description(&self) -> String {
        (**self).description()
    }
}

/// No source: every caller is unauthenticated.
impl Identify for () {
    fn identify(&self, _: &IdentifyContext<'_>) -> Identified {
        Identified::Absent
    }
}

/// A request whose caller is to be identified, and the tokens that were found in it so far.
pub struct IdentifyContext<'a> {
    head: RequestHead<'a>,
    address: Option<IpAddr>,
    now: Timestamp,
    tokens: RefCell<TokenRegistry<'a>>,
}

/// Tokens of one request, and the reasons why credentials were not accepted.
#[derive(Default)]
struct TokenRegistry<'a> {
    /// Distinct values in the order in which they were found.
    found: [Option<FoundToken<'a>>; MAX_TOKENS],
    /// Whether a token source has returned an authenticated identity.
    has_user: bool,
    /// Why a credential that is not a registered token was not accepted: the first reason that
    /// is charged, else the first.
    other: Option<InvalidReason>,
    /// Number of calls that have recorded a reason.
    rejection_count: usize,
}

/// A token, and the combined result of the sources that have verified it so far.
struct FoundToken<'a> {
    text: &'a [u8],
    is_accepted: bool,
    /// The first reason that is not charged, else the first: a token that one source cannot verify
    /// yet is not wrong because no other source accepts it.
    rejected: Option<InvalidReason>,
}

/// The most distinct tokens that are verified for one request.
pub(super) const MAX_TOKENS: usize = 4;

/// State of a token when a source finds it.
pub(super) enum Registered {
    /// It must be verified. Contains its index.
    New(usize),
    /// Another source has accepted it.
    Accepted,
    /// The request has too many tokens.
    TooMany,
}

impl<'a> IdentifyContext<'a> {
    /// Creates the context of a request from the client IP `address`, at the time `now`.
    #[must_use]
    pub fn new(head: RequestHead<'a>, address: Option<IpAddr>, now: Timestamp) -> Self {
        Self {
            head,
            address,
            now,
            tokens: RefCell::default(),
        }
    }

    /// Returns the head of the request.
    #[must_use]
    pub const fn head(&self) -> RequestHead<'a> {
        self.head
    }

    /// Returns the client IP, if it is known.
    #[must_use]
    pub const fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Returns the present time of the wall clock.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the index of a registered token.
    pub(super) fn token_index(&self, token: &[u8]) -> Option<usize> {
        let tokens = self.tokens.borrow();
        let mut found = tokens.found.iter().map_while(Option::as_ref);
        found.position(|found| found.text == token)
    }

    /// Registers a token that was found in the request.
    pub(super) fn register_token(&self, token: &'a [u8]) -> Registered {
        let mut tokens = self.tokens.borrow_mut();
        for (index, entry) in tokens.found.iter_mut().enumerate() {
            match entry {
                Some(found) if found.text != token => {}
                Some(found) if found.is_accepted => return Registered::Accepted,
                Some(_) => return Registered::New(index),
                None => {
                    *entry = Some(FoundToken {
                        text: token,
                        is_accepted: false,
                        rejected: None,
                    });
                    return Registered::New(index);
                }
            }
        }
        Registered::TooMany
    }

    /// Records that a source has accepted a registered token.
    pub(super) fn accept_token(&self, index: usize) {
        if let Some(found) = &mut self.tokens.borrow_mut().found[index] {
            found.is_accepted = true;
        }
    }

    /// Records that a token source has returned an authenticated identity.
    pub(super) fn accept_token_of_user(&self) {
        self.tokens.borrow_mut().has_user = true;
    }

    /// Records why a source has not accepted a registered token.
    pub(super) fn reject_token(&self, index: usize, reason: InvalidReason) {
        let mut tokens = self.tokens.borrow_mut();
        tokens.rejection_count += 1;
        if let Some(found) = &mut tokens.found[index]
            && found
                .rejected
                .is_none_or(|known| known.is_charged() && !reason.is_charged())
        {
            found.rejected = Some(reason);
        }
    }

    /// Records why a source has not accepted a credential that is not a registered token.
    pub(super) fn reject(&self, reason: InvalidReason) {
        let mut tokens = self.tokens.borrow_mut();
        tokens.rejection_count += 1;
        tokens.other = Some(worse(tokens.other, reason));
    }

    /// Returns how often a source has recorded a reason. A chain compares it before and after a call.
    pub(super) fn rejection_count(&self) -> usize {
        self.tokens.borrow().rejection_count
    }

    /// Returns why no credential was accepted: the first reason that is charged, else the first.
    pub(super) fn rejected(&self) -> Option<InvalidReason> {
        let tokens = self.tokens.borrow();
        let found = tokens.found.iter().flatten();
        let found = found.filter(|found| !found.is_accepted);
        let reasons = found.filter_map(|found| found.rejected);
        let reasons = reasons.chain(tokens.other);
        reasons.fold(None, |known, reason| Some(worse(known, reason)))
    }

    /// Whether a token source has returned an authenticated identity.
    pub(super) fn has_token_of_user(&self) -> bool {
        self.tokens.borrow().has_user
    }
}

/// Returns the first of two reasons, unless only the second is charged.
fn worse(known: Option<InvalidReason>, reason: InvalidReason) -> InvalidReason {
    match known {
        Some(known) if known.is_charged() || !reason.is_charged() => known,
        _ => reason,
    }
}

impl fmt::Debug for IdentifyContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdentifyContext")
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}
