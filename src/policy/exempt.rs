//! Exemptions: requests that are not counted.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::catch_panic::catch_panic;
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

    /// Returns the name in events: `route`, `role`, `subject`, `network`, `predicate`, `maintenance`.
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
    /// Returns why a caller is exempt by its identity: by a role or a subject.
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

    /// Returns why a request is exempt by its client IP or by its head. A closure that panics does
    /// not exempt it.
    #[inline]
    pub(super) fn by_head(&self, head: &RequestHead<'_>, ip: Option<IpAddr>) -> Option<Exemption> {
        let is_from = |ip: IpAddr| self.networks.iter().any(|network| network.contains(&ip));
        if ip.is_some_and(is_from) {
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
