//! A chat for many tenants, each with limits of its own for each of its users: so many in any
//! minute, and so many at once.
//!
//! ```sh
//! cargo run --example tenant_chat
//! ```
//!
//! | variable | |
//! |---|---|
//! | `PORT` | 3000; 0 is any free one |
//! | `JWT_SECRET` | what tokens are signed with (HS256); claims are `sub` and `tenant_id` |
//! | `TENANT_CONFIG` | a JSON file of tenants and their limits; `tenant_chat.json`, if it is not set |
//! | `REDIS_URL` | where to count, together with others; else in memory |
//! | `LOG_LEVEL` | info |
//!
//! Whoever comes without a token is counted by address, under the limits of the tenant `public`;
//! tenants that the file does not name have those of `default`.

mod common;
#[path = "common/service.rs"]
mod service;
#[path = "common/token.rs"]
mod token;

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::error::Error;
use std::fs;
use std::net::SocketAddr;

use axum::body::Bytes;
use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use tollgate::identity::{Jwt, JwtBuilder};
use tollgate::policy::{Policy, PolicyBuilder, Rule, Tiers};
use tollgate::{Algorithm, Invalid, Quota, RateLimitLayer, Window};

/// What the file says of a tenant; what else it says is for others to read.
#[derive(Deserialize)]
struct Tenant {
    #[serde(rename = "rateLimit")]
    rate_limit: RateLimit,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RateLimit {
    per_minute: u64,
    burst: u64,
}

impl RateLimit {
    /// The exact count of the last minute, and a bucket that takes the edge off: both must have
    /// room. One instance and its clock decide it, or Redis, and never a copy that is behind.
    fn quotas(self) -> Result<[Quota; 2], Invalid> {
        let per_minute = Quota::builder(self.per_minute, Window::MINUTE);
        let at_once = per_minute.clone().algorithm(Algorithm::TokenBucket);
        Ok([
            per_minute.algorithm(Algorithm::SlidingLog).build()?,
            at_once.burst(self.burst).build()?,
        ])
    }

    fn rule(self) -> Result<Rule, Invalid> {
        let [per_minute, at_once] = self.quotas()?;
        Ok(Rule::new(per_minute).and(at_once))
    }

    /// Tenants with the same numbers share a tier, but never a counter.
    fn tier(self) -> String {
        format!("{}-per-minute-{}-at-once", self.per_minute, self.burst)
    }
}

/// The limits of a file of tenants.
fn policy(json: &str) -> Result<PolicyBuilder, Box<dyn Error>> {
    let tenants: BTreeMap<String, Tenant> = serde_json::from_str(json)?;
    let limit_of = |name: &str| tenants.get(name).map(|tenant| tenant.rate_limit);
    let default = limit_of("default").ok_or("there is no tenant `default`")?;
    let mut tiers = Tiers::new(default.tier());
    let mut users = default.rule()?.per(["tenant", "user"]);
    let mut known = HashSet::from([default.tier()]);
    for (name, Tenant { rate_limit }) in &tenants {
        let quotas = rate_limit
            .quotas()
            .map_err(|wrong| format!("{name}: {wrong}"))?;
        let tier = rate_limit.tier();
        tiers = tiers.tier(&tier, 1).assign("tenant", name, &tier);
        if known.insert(tier.clone()) {
            users = users.tier(tier, quotas);
        }
    }
    let public = limit_of("public").unwrap_or(default);
    Ok(Policy::builder()
        .tiers(tiers)
        .authenticated(users)
        .anonymous(public.rule()?))
}

/// The layer tells everybody where they stand (`X-RateLimit-…`), and whoever is over the limit in
/// the envelope, with the trace that the request came with.
fn limits(tokens: Jwt) -> RateLimitLayer {
    const SHAPE: &str = r#"{"default": {"rateLimit": {"perMinute": 60, "burst": 10}}, …}"#;
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/tenant_chat.json");
    let file = env::var_os("TENANT_CONFIG").unwrap_or_else(|| beside.into());
    let layer = || -> Result<RateLimitLayer, Box<dyn Error>> {
        let policy = policy(&fs::read_to_string(&file)?)?;
        let layer = RateLimitLayer::builder(policy).identify(tokens);
        Ok(layer.store(service::store("tenant-chat")).build()?)
    };
    layer().unwrap_or_else(|wrong| {
        let allowed = format!("a file of the form `{SHAPE}`, and this one is not: {wrong}");
        common::refuse("TENANT_CONFIG", &file.to_string_lossy(), &allowed)
    })
}

/// Says what it was told.
async fn chat(body: Bytes) -> Json<Value> {
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    Json(json!({ "reply": said["message"].as_str().unwrap_or("Hello!") }))
}

fn tokens(secret: &str) -> JwtBuilder {
    Jwt::hs256(secret).tenant("tenant_id")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    service::log();
    let secret = common::setting(
        "JWT_SECRET",
        "for development only, known to everybody",
        "a secret, which is neither empty nor a PEM text",
        |text| tokens(text).build().ok().map(|_| text.to_owned()),
    );
    let app = Router::new()
        .route("/chat", post(chat))
        .layer(limits(tokens(&secret).build()?));
    let claims = json!({ "sub": "alice", "tenant_id": "acme" });
    let token = token::token(&secret, claims)?;
    service::serve(app, |server| what_to_try(server, &token)).await
}

fn what_to_try(server: SocketAddr, token: &str) -> String {
    format!(
        "
As alice of acme, and as anybody:

    curl -i -X POST http://{server}/chat -H 'Authorization: Bearer {token}'

    curl -i -X POST 'http://{server}/chat?[1-4]'

"
    )
}
