//! Text that names the part of a policy by which a request is exempt.

use super::Explainer;
use crate::policy::exempt::Exemption;
use crate::policy::route::RouteMatch;

impl Explainer<'_> {
    /// Returns the part of the policy that causes the exemption `why`, as text.
    pub(super) fn exempt_because(&self, why: Exemption) -> String {
        let text = match why {
            Exemption::Route => self.route_text(),
            Exemption::Role => self.role_text(),
            Exemption::Subject => self.subject_text(),
            Exemption::Network => self.network_text(),
            Exemption::Predicate => Some("a closure of the policy exempts it".to_owned()),
            Exemption::Maintenance => {
                let until = self.policy.maintenance_until.unwrap_or_default();
                Some(format!("limits are off until {until}"))
            }
        };
        text.unwrap_or_default()
    }

    fn route_text(&self) -> Option<String> {
        let routes = &self.policy.routes;
        let RouteMatch::Exempt(route) = routes.find(self.head.method(), &self.routed_path) else {
            return None;
        };
        let route = &self.policy.about.exempt_routes[route];
        Some(format!("the route `{route}` is exempt"))
    }

    fn role_text(&self) -> Option<String> {
        let role = self.policy.exempt_role(self.caller.identity)?;
        Some(format!("the role `{role}` is exempt"))
    }

    fn subject_text(&self) -> Option<String> {
        let identity = self.caller.identity?;
        let mut subjects = self.policy.exempt.subjects.iter();
        let (name, value) = subjects.find(|(name, value)| identity.get(name) == Some(value))?;
        Some(format!("{name}={value} is exempt"))
    }

    fn network_text(&self) -> Option<String> {
        let ip = self.explain_request.ip?;
        let mut networks = self.policy.exempt.networks.iter();
        let network = networks.find(|network| network.contains(&ip))?;
        Some(format!("the network {network} is exempt"))
    }
}
