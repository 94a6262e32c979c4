//! Layers of tollgate.

use tollgate::headers::HeaderSet;
use tollgate::identity::Jwt;
use tollgate::policy::{Policy, Rule};
use tollgate::{Override, RateLimitLayer, RateLimitLayerBuilder};

use crate::work::{AMPLE, DAYS, SCARCE, SECRET};

/// Returns a builder with one quota per client IP, with the algorithm of governor.
fn per_address(amount: u32) -> RateLimitLayerBuilder {
    let quota = format!("{amount}/{DAYS}d, token-bucket");
    RateLimitLayer::builder(quota.as_str())
}

/// One quota per client IP.
pub fn layer(headers: HeaderSet) -> RateLimitLayer {
    let layer = per_address(AMPLE).headers(headers);
    layer.build().expect("a valid layer")
}

/// One quota per client IP, and an override for an address that sends no requests.
pub fn with_override(headers: HeaderSet) -> RateLimitLayer {
    let layer = layer(headers);
    let quota = format!("7/{DAYS}d, token-bucket");
    let unrelated = Override::new([("ip", "192.0.2.1")], "global", quota.as_str());
    let set = layer.set_override(unrelated.expect("a valid override"));
    set.wait().expect("memory keeps overrides");
    layer
}

/// A policy with rules for 20 endpoints. The one of the requests has a parameter of this name.
pub fn routes(parameter: &str) -> RateLimitLayer {
    let quota = format!("{AMPLE}/{DAYS}d, token-bucket");
    let rule = || Rule::new(quota.as_str());
    let mut policy = Policy::builder().everyone(quota.as_str());
    policy = policy.endpoint(format!("GET /v1/items/{{{parameter}}}"), rule());
    for number in 1..20 {
        policy = policy.endpoint(format!("GET /v1/other{number}/{{id}}"), rule());
    }
    let layer = RateLimitLayer::builder(policy).headers(HeaderSet::None);
    layer.build().expect("a valid layer")
}

/// One quota per client IP with the default algorithm.
pub fn sliding() -> RateLimitLayer {
    let quota = format!("{AMPLE}/{DAYS}d");
    let layer = RateLimitLayer::builder(quota.as_str()).headers(HeaderSet::None);
    layer.build().expect("a valid layer")
}

/// One quota per client IP that is used up.
pub fn denying() -> RateLimitLayer {
    per_address(SCARCE).build().expect("a valid layer")
}

/// Two quotas of the user of a token, and one of the tenant.
pub fn three(headers: HeaderSet) -> RateLimitLayer {
    let quota = |days: u32| format!("{AMPLE}/{days}d, token-bucket");
    let policy = Policy::builder()
        .authenticated(Rule::new(quota(DAYS).as_str()).limit(quota(2 * DAYS).as_str()))
        .rule("tenant", Rule::new(quota(DAYS).as_str()).per(["tenant"]));
    let jwt = Jwt::hs256(SECRET)
        .issuer("https://id.example.com")
        .tenant("tenant_id")
        .build();
    RateLimitLayer::builder(policy)
        .identify(jwt.expect("a valid source"))
        .headers(headers)
        .build()
        .expect("a valid layer")
}
