//! What every source of identity has in common.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::head::Head;
use crate::who::Identity;

/// Finds out who is asking, from the head of a request.
///
/// Sources form a chain: the first that knows the caller wins.
pub trait Identify: fmt::Debug + Send + Sync + 'static {
    /// Who is asking, as far as this source can tell.
    fn identify(&self, asking: &Asking<'_>) -> Identified;
}

/// What a source found out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Identified {
    /// There is nothing here for this source to look at.
    Absent,
    /// A verified caller.
    Known(Arc<Identity>),
    /// Credentials that are wrong: forged, expired, garbage. They never pick a counter.
    Invalid,
    /// Not looked at: too many wrong credentials have come from this address.
    Throttled,
}

impl Identified {
    /// Known, or invalid if the caller would be known by an empty value: all of those would
    /// share one counter.
    #[must_use]
    pub fn known(identity: Identity) -> Self {
        Self::known_shared(Arc::new(identity))
    }

    pub(super) fn known_shared(identity: Arc<Identity>) -> Self {
        if identity.primary().1.is_empty() {
            return Self::Invalid;
        }
        Self::Known(identity)
    }
}

/// A source that is shared.
impl<I: Identify + ?Sized> Identify for Arc<I> {
    fn identify(&self, asking: &Asking<'_>) -> Identified {
        (**self).identify(asking)
    }
}

/// Nobody is known.
impl Identify for () {
    fn identify(&self, _: &Asking<'_>) -> Identified {
        Identified::Absent
    }
}

/// What wrong credentials may cost.
///
/// A closure is one, too: it says whether there is room, and nothing is given back.
pub trait Budget {
    /// Charges in advance for credentials that are about to be verified; whether there was
    /// room.
    fn charge(&self) -> bool;

    /// Gives back what was charged since the last time that anything was given back or kept:
    /// the credentials were right.
    fn forgive(&self) {}

    /// Keeps what was charged since then: the credentials were wrong.
    fn keep(&self) {}
}

impl<F: Fn() -> bool> Budget for F {
    fn charge(&self) -> bool {
        self()
    }
}

/// A request whose sender is to be found out.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    head: Head<'a>,
    address: Option<IpAddr>,
    now: Timestamp,
    budget: &'a dyn Budget,
}

impl<'a> Asking<'a> {
    /// `address` is the client's; `budget` is charged before costly work such as verifying a
    /// signature, and has no room when too many wrong credentials have come from there.
    #[must_use]
    pub fn new(
        head: Head<'a>,
        address: Option<IpAddr>,
        now: Timestamp,
        budget: &'a dyn Budget,
    ) -> Self {
        Self {
            head,
            address,
            now,
            budget,
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

    /// To be asked, once, before credentials are verified at a cost. If it says no, the answer
    /// is [`Identified::Throttled`].
    #[must_use]
    pub fn may_verify(&self) -> bool {
        self.budget.charge()
    }

    /// Settles what a source was charged, by what it found. To be done before the next one is
    /// asked: neither pays for the other, and neither is excused by it.
    pub(super) fn settle(&self, found: &Identified) {
        match found {
            Identified::Known(_) | Identified::Absent => self.budget.forgive(),
            Identified::Invalid | Identified::Throttled => self.budget.keep(),
        }
    }
}

impl fmt::Debug for Asking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking")
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}
