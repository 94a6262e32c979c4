//! Text that names the part of a policy by which a request is exempt.

use ipnet::IpNet;

use super::Explainer;
use crate::identity_types::Identity;
use crate::policy::exempt::Exemption;
use crate::policy::route::RouteMatch;

impl Explainer<'_> {
    /// Returns the part of the policy that causes the exemption `why`, as text.
    pub(super) fn exempt_because(&self, why: Exemption) -> String {
        match why {
            Exemption::Route => self.route_text(),
            Exemption::Role => self.role_text(),
            Exemption::Subject => self.subject_text(),
            Exemption::Network => self.network_text(),
            Exemption::Predicate => "a closure of the policy says so".to_owned(),
            Exemption::Maintenance => {
                let until = self.policy.maintenance_until.unwrap_or_default();
                format!("limits are off until {until}")
            }
        }
    }

    fn route_text(&self) -> String {
        match self
            .policy
            .routes
            .find(self.head.method(), &self.routed_path)
        {
            RouteMatch::Exempt(route) => {
                let route = &self.policy.about.exempt_routes[route];
                format!("the route `{route}` is exempt")
            }
            _ => String::new(),
        }
    }

    fn role_text(&self) -> String {
        let mut roles = self.caller.identity.into_iter().flat_map(Identity::roles);
        let exempt = &self.policy.exempt.roles;
        let role = roles.find(|role| exempt.iter().any(|exempt| **exempt == **role));
        role.map_or_else(String::new, |role| format!("the role `{role}` is exempt"))
    }

    fn subject_text(&self) -> String {
        let value_of = |name: &str| self.caller.identity.and_then(|identity| identity.get(name));
        let mut subjects = self.policy.exempt.subjects.iter();
        let subject = subjects.find(|(name, value)| value_of(name) == Some(value));
        subject.map_or_else(String::new, |(name, value)| {
            format!("{name}={value} is exempt")
        })
    }

    fn network_text(&self) -> String {
        let ip = self.explain_request.ip;
        let has_client = |network: &&IpNet| ip.is_some_and(|ip| network.contains(&ip));
        let network = self.policy.exempt.networks.iter().find(has_client);
        network.map_or_else(String::new, |network| {
            format!("the network {network} is exempt")
        })
    }
}
