//! `Policy::explain` and `Policy::overview`.

mod agreement;
mod overview;
mod reasons;
mod text;

use tollgate::policy::{Count, Policy, PolicyBuilder, Rule, Tiers};

/// A policy with every kind of rule and exemption.
fn policy() -> PolicyBuilder {
    Policy::builder()
        .tiers(
            Tiers::new("free")
                .tier("team", 5)
                .tier("enterprise", 10)
                .assign("user", "ada", "enterprise"),
        )
        .authenticated("1000/hour")
        .anonymous("100/hour")
        .category("secrets", Rule::new("500/hour"))
        .category("mcp", Rule::new("200/hour").stack(true))
        .endpoint("GET /v1/secrets/{id}", Rule::in_category("secrets"))
        .endpoint(
            "PUT /v1/secrets/{id}",
            Rule::in_category("secrets")
                .limit("100/hour")
                .name("secrets-update"),
        )
        .endpoint(
            "POST /v1/mcp/get",
            Rule::in_category("mcp")
                .limit("50/hour")
                .name("mcp-get")
                .tier("team", ["60/hour"]),
        )
        .endpoint(
            "POST /login",
            Rule::new("10/hour")
                .name("login")
                .per(["ip"])
                .scale(false)
                .count(Count::failure()),
        )
        .endpoint(
            "GET /ping",
            Rule::new("60/minute").name("ping").cost(2).global(false),
        )
        .rule(
            "tenant",
            Rule::new("100_000/day").per(["tenant"]).scale(true),
        )
        .rule("instance", Rule::new("1000/second").per([]).scale(false))
        .exempt_role("service")
        .exempt_subject("tenant", "ourselves")
        .exempt_network("10.0.0.0/8")
        .exempt_route("GET /health")
}
