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

/// A request whose sender is to be found out.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    head: Head<'a>,
    address: Option<IpAddr>,
    now: Timestamp,
    afford: &'a dyn Fn() -> bool,
}

impl<'a> Asking<'a> {
    /// `address` is the client's; `afford` is asked before costly work such as verifying a
    /// signature, and says no when too many wrong credentials have come from there.
    #[must_use]
    pub fn new(
        head: Head<'a>,
        address: Option<IpAddr>,
        now: Timestamp,
        afford: &'a dyn Fn() -> bool,
    ) -> Self {
        Self {
            head,
            address,
            now,
            afford,
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

    /// The present.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// To be asked, once, before credentials are verified at a cost. If it says no, the answer
    /// is [`Identified::Throttled`].
    #[must_use]
    pub fn may_verify(&self) -> bool {
        (self.afford)()
    }
}

impl fmt::Debug for Asking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking")
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}
