//! Who is not counted at all.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::catch_panic::catch_panic;
use crate::head::RequestHead;
use crate::identity_types::Identity;

/// Why a request was not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exemption {
    /// The route is exempt.
    Route,
    /// The caller has an exempt role.
    Role,
    /// The caller is exempt by name.
    Subject,
    /// The address is in an exempt network.
    Network,
    /// A closure said so.
    Predicate,
    /// Limits are off for a while.
    Maintenance,
}

impl Exemption {
    /// Whether it is for the audit: somebody decided that a person, or everybody for a while,
    /// is not counted.
    pub(crate) const fn is_audited(self) -> bool {
        matches!(self, Self::Role | Self::Subject | Self::Maintenance)
    }

    /// What events call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Role => "role",
            Self::Subject => "subject",
            Self::Network => "network",
            Self::Predicate => "predicate",
            Self::Maintenance => "maintenance",
        }
    }
}

/// A closure of the user's.
type Predicate = Arc<dyn Fn(&RequestHead<'_>) -> bool + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) struct Exemptions {
    pub(crate) roles: Vec<Box<str>>,
    pub(crate) subjects: Vec<(Box<str>, Box<str>)>,
    pub(crate) networks: Vec<IpNet>,
    pub(crate) predicates: Vec<Predicate>,
}

impl Exemptions {
    /// Whether, and why, a caller is exempt.
    #[inline]
    pub(super) fn by_identity(&self, identity: &Identity) -> Option<Exemption> {
        let is_exempt = |role: &str| self.roles.iter().any(|known| **known == *role);
        if identity.roles().any(is_exempt) {
            return Some(Exemption::Role);
        }
        let is_named = |(name, value): &(Box<str>, Box<str>)| identity.get(name) == Some(value);
        let named = self.subjects.iter().any(is_named);
        named.then_some(Exemption::Subject)
    }

    /// Whether, and why, a request is exempt by where it comes from, or by what it says of
    /// itself.
    #[inline]
    pub(super) fn by_head(&self, head: &RequestHead<'_>, ip: Option<IpAddr>) -> Option<Exemption> {
        let is_from = |ip: IpAddr| self.networks.iter().any(|network| network.contains(&ip));
        if ip.is_some_and(is_from) {
            return Some(Exemption::Network);
        }
        let says_so = |predicate: &Predicate| catch_panic(|| predicate(head)).unwrap_or(false);
        let said = self.predicates.iter().any(says_so);
        said.then_some(Exemption::Predicate)
    }
}

impl fmt::Debug for Exemptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exemptions")
            .field("roles", &self.roles)
            .field("networks", &self.networks)
            .finish_non_exhaustive()
    }
}
