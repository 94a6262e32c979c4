//! What every source of identity has in common.

use std::cell::RefCell;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::invalid_reason::InvalidReason;
use crate::clock::Timestamp;
use crate::head::Head;
use crate::who::Identity;

/// Finds the identity of a caller from the head of a request.
///
/// Sources form a [chain](super::Chain): the first that accepts a credential applies.
pub trait Identify: fmt::Debug + Send + Sync + 'static {
    /// Returns what this source finds in the request.
    fn identify(&self, asking: &Asking<'_>) -> Identified;

    /// Whether this source reads tokens, of which one request may carry several. Default:
    /// `false`.
    ///
    /// After one token source has accepted a token, a chain also asks the token sources that
    /// follow: a request with tokens of different users is
    /// [ambiguous](Identified::Ambiguous).
    fn is_token_source(&self) -> bool {
        false
    }
}

/// What a source found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Identified {
    /// The request has no credential for this source.
    Absent,
    /// A verified identity. It may be [unauthenticated](Identity::unauthenticated): then a later
    /// source that knows the caller applies.
    Known(Arc<Identity>),
    /// A credential that is not accepted. It never selects a counter.
    Invalid(InvalidReason),
    /// Credentials that can be read in several ways: header lines that differ, tokens of
    /// different users, too many tokens. The application may read them in another way, so the
    /// request gets 401 with the code `AMBIGUOUS_CREDENTIALS`.
    Ambiguous,
    /// A credential over the size limit. It is not looked at; the request gets 401 with the code
    /// `INVALID_CREDENTIALS`.
    TooLarge,
}

impl Identified {
    /// Known; invalid if the primary dimension is empty, because all such callers would share
    /// one counter.
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

/// A source that is shared.
impl<I: Identify + ?Sized> Identify for Arc<I> {
    fn identify(&self, asking: &Asking<'_>) -> Identified {
        (**self).identify(asking)
    }

    fn is_token_source(&self) -> bool {
        (**self).is_token_source()
    }
}

/// No source: every caller is unauthenticated.
impl Identify for () {
    fn identify(&self, _: &Asking<'_>) -> Identified {
        Identified::Absent
    }
}

/// A request whose caller is to be identified, and the tokens that were found in it so far.
pub struct Asking<'a> {
    head: Head<'a>,
    address: Option<IpAddr>,
    now: Timestamp,
    tokens: RefCell<Tokens<'a>>,
}

/// The tokens of one request.
#[derive(Default)]
struct Tokens<'a> {
    /// Distinct values in the order in which they were found, and whether a source has accepted
    /// them.
    #[cfg(feature = "jwt")]
    found: [Option<(&'a [u8], bool)>; MAX_TOKENS],
    /// Whether an accepted token names a user.
    has_user: bool,
    #[cfg(not(feature = "jwt"))]
    of: std::marker::PhantomData<&'a [u8]>,
}

/// The most distinct tokens that are verified for one request.
#[cfg(feature = "jwt")]
const MAX_TOKENS: usize = 4;

/// What is known of a token when it is found.
#[cfg(feature = "jwt")]
pub(super) enum Registered {
    /// It has to be verified; its index.
    New(usize),
    /// Another source has accepted it.
    Accepted,
    /// The request has too many tokens.
    TooMany,
}

impl<'a> Asking<'a> {
    /// A request from the client IP `address`, at the time `now`.
    #[must_use]
    pub fn new(head: Head<'a>, address: Option<IpAddr>, now: Timestamp) -> Self {
        Self {
            head,
            address,
            now,
            tokens: RefCell::default(),
        }
    }

    /// The head of the request.
    #[must_use]
    pub const fn head(&self) -> Head<'a> {
        self.head
    }

    /// The client's address, if it is known.
    #[must_use]
    pub const fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Returns the present, on the wall clock.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Registers a token that was found in the request.
    #[cfg(feature = "jwt")]
    pub(super) fn register_token(&self, token: &'a [u8]) -> Registered {
        let mut tokens = self.tokens.borrow_mut();
        for (index, place) in tokens.found.iter_mut().enumerate() {
            match place {
                Some((found, true)) if *found == token => return Registered::Accepted,
                Some((found, false)) if *found == token => return Registered::New(index),
                Some(_) => {}
                None => {
                    *place = Some((token, false));
                    return Registered::New(index);
                }
            }
        }
        Registered::TooMany
    }

    /// Notes that a source has accepted a registered token, and whether it names a user.
    #[cfg(feature = "jwt")]
    pub(super) fn accept_token(&self, index: usize, has_user: bool) {
        let mut tokens = self.tokens.borrow_mut();
        if let Some((_, is_accepted)) = &mut tokens.found[index] {
            *is_accepted = true;
        }
        tokens.has_user |= has_user;
    }

    /// Whether a source has accepted a token that names a user.
    pub(super) fn has_token_of_user(&self) -> bool {
        self.tokens.borrow().has_user
    }
}

impl fmt::Debug for Asking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking")
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}
