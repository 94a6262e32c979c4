//! `[exempt]`

use super::ip::NETWORK;
use super::{TableSpec, ValueKind, keys};
use crate::config::tree::Setting;
use crate::policy::PolicyBuilder;

pub(super) static EXEMPT: TableSpec = TableSpec::new(keys! {
    /// Callers with one of these roles.
    "roles": ValueKind::Texts("the name of a role"), aliases ["role"];
    /// Clients from one of these networks.
    "networks": ValueKind::Texts(NETWORK), aliases ["ips", "addresses", "network", "cidrs"];
    /// Requests are not counted if every reading of their path takes one of these routes.
    "routes": ValueKind::Texts("a route such as `\"GET /health\"`"),
        aliases ["paths", "endpoints", "route"];
    /// Callers by name.
    "subjects": ValueKind::Table(&SUBJECTS), aliases ["subject", "callers"];
});

static SUBJECTS: TableSpec = TableSpec::chosen(
    "dimension",
    ValueKind::Texts("the name of a caller"),
    "Names by a dimension of the identity: `user`, `tenant`, …",
);

pub(super) fn read(table: &Setting<'_>, mut policy: PolicyBuilder) -> PolicyBuilder {
    for role in table.texts_of("roles") {
        policy = policy.exempt_role(role);
    }
    for network in table.texts_of("networks") {
        policy = policy.exempt_network(network);
    }
    for route in table.texts_of("routes") {
        policy = policy.exempt_route(route);
    }
    let subjects = table.get("subjects");
    for (dimension, names) in subjects.iter().flat_map(Setting::entries) {
        for name in names.items().filter_map(|name| name.text()) {
            policy = policy.exempt_subject(&dimension.name, name);
        }
    }
    policy
}
