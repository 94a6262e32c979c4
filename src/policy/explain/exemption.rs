//! What exactly a request is exempt by, once it is known that it is.

use ipnet::IpNet;

use super::Explainer;
use crate::identity_types::Identity;
use crate::policy::exempt::Exemption;
use crate::policy::route::RouteMatch;

impl Explainer<'_> {
    /// What it is in the policy that exempts the request, for people.
    pub(super) fn because(&self, why: Exemption) -> String {
        match why {
            Exemption::Route => self.route(),
            Exemption::Role => self.role(),
            Exemption::Subject => self.subject(),
            Exemption::Network => self.network(),
            Exemption::Predicate => "a closure of the policy says so".to_owned(),
            Exemption::Maintenance => {
                let until = self.policy.maintenance_until.unwrap_or_default();
                format!("limits are off until {until}")
            }
        }
    }

    fn route(&self) -> String {
        match self.policy.routes.find(self.head.method(), &self.taken) {
            RouteMatch::Exempt(route) => {
                let route = &self.policy.about.exempt_routes[route];
                format!("the route `{route}` is exempt")
            }
            _ => String::new(),
        }
    }

    fn role(&self) -> String {
        let mut roles = self.caller.identity.into_iter().flat_map(Identity::roles);
        let known = &self.policy.exempt.roles;
        let role = roles.find(|role| known.iter().any(|known| **known == **role));
        role.map_or_else(String::new, |role| format!("the role `{role}` is exempt"))
    }

    fn subject(&self) -> String {
        let value_of = |name: &str| self.caller.identity.and_then(|identity| identity.get(name));
        let mut subjects = self.policy.exempt.subjects.iter();
        let subject = subjects.find(|(name, value)| value_of(name) == Some(value));
        subject.map_or_else(String::new, |(name, value)| {
            format!("{name}={value} is exempt")
        })
    }

    fn network(&self) -> String {
        let ip = self.explain_request.ip;
        let is_from = |network: &&IpNet| ip.is_some_and(|ip| network.contains(&ip));
        let network = self.policy.exempt.networks.iter().find(is_from);
        network.map_or_else(String::new, |network| {
            format!("the network {network} is exempt")
        })
    }
}
