//! Exemptions: requests that are not counted.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::catch_panic::catch_panic;
use crate::error::named;
use crate::head::RequestHead;
use crate::identity_types::Identity;

/// Why a request is exempt, which means that it is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exemption {
    /// The route is exempt.
    Route,
    /// The caller has an exempt role.
    Role,
    /// The caller has an exempt subject, such as a user or a tenant.
    Subject,
    /// The client IP is in an exempt network.
    Network,
    /// A closure of the policy returned `true`.
    Predicate,
    /// All limits are switched off until the end of the maintenance.
    Maintenance,
}

impl Exemption {
    /// Returns whether requests with this exemption are logged for the audit: an operator has
    /// exempted a caller, or all callers for a limited time.
    pub(crate) const fn is_audited(self) -> bool {
        matches!(self, Self::Role | Self::Subject | Self::Maintenance)
    }
}

named!(Exemption {
    Route => "route",
    Role => "role",
    Subject => "subject",
    Network => "network",
    Predicate => "predicate",
    Maintenance => "maintenance",
});

/// Closure that returns whether a request is exempt.
type Predicate = Arc<dyn Fn(&RequestHead<'_>) -> bool + Send + Sync>;

/// The exemptions of a policy, except routes and maintenance.
#[derive(Clone, Default)]
pub(crate) struct Exemptions {
    pub(crate) roles: Vec<Box<str>>,
    pub(crate) subjects: Vec<(Box<str>, Box<str>)>,
    pub(crate) networks: Vec<IpNet>,
    pub(crate) predicates: Vec<Predicate>,
}

impl Exemptions {
    /// Returns the first role of a caller that is exempt.
    #[inline]
    pub(super) fn role_of<'a>(&self, identity: &'a Identity) -> Option<&'a str> {
        let is_exempt = |role: &&str| self.roles.iter().any(|known| **known == **role);
        identity.roles().find(is_exempt)
    }

    /// Returns why a caller is exempt by its identity: by a role or a subject.
    #[inline]
    pub(super) fn by_identity(&self, identity: &Identity) -> Option<Exemption> {
        if self.role_of(identity).is_some() {
            return Some(Exemption::Role);
        }
        let is_named = |(name, value): &(Box<str>, Box<str>)| identity.get(name) == Some(value);
        let named = self.subjects.iter().any(is_named);
        named.then_some(Exemption::Subject)
    }

    /// Returns whether an exempt network contains this client IP.
    pub(super) fn covers(&self, ip: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&ip))
    }

    /// Returns why a request is exempt by its client IP or by its head. A closure that panics does
    /// not exempt it.
    #[inline]
    pub(super) fn by_head(&self, head: &RequestHead<'_>, ip: Option<IpAddr>) -> Option<Exemption> {
        if ip.is_some_and(|ip| self.covers(ip)) {
            return Some(Exemption::Network);
        }
        let exempts = |predicate: &Predicate| catch_panic(|| predicate(head)).unwrap_or(false);
        let is_exempt = self.predicates.iter().any(exempts);
        is_exempt.then_some(Exemption::Predicate)
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
