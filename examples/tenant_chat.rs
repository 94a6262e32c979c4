//! A multi-tenant chat. Each tenant has a limit per user and minute, and a burst.
//!
//! ```sh
//! cargo run --example tenant_chat
//! ```
//!
//! | variable | meaning |
//! |---|---|
//! | `PORT` | Port. 0 is any free port. Default: 3000 |
//! | `JWT_SECRET` | Secret of the tokens (HS256). Claims: `sub`, `tenant_id` |
//! | `TENANT_CONFIG` | JSON file with the limits of tenants. Default: `tenant_chat.json` |
//! | `REDIS_URL` | Redis server that instances share. Default: count in memory |
//! | `LOG_LEVEL` | Default: info |
//!
//! Requests without a token count per client IP, with the limits of tenant `public`. Tenants that are not
//! in the file have the limits of `default`.

mod common;

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Bytes;
use axum::routing::post;
use axum::{Json, Router};
use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use tollgate::identity::{Jwt, JwtBuilder};
use tollgate::policy::{Policy, PolicyBuilder, Rule, Tiers};
use tollgate::{Algorithm, Quota, RateLimitLayer, ValidationError, Window};
use tracing::Level;

/// A tenant of the file. Other keys are ignored.
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
    /// Returns an exact sliding window of one minute and a token bucket for the burst. A request needs
    /// room in both.
    fn quotas(self) -> Result<[Quota; 2], ValidationError> {
        let per_minute = Quota::builder(self.per_minute, Window::MINUTE);
        let at_once = per_minute.clone().algorithm(Algorithm::TokenBucket);
        Ok([
            per_minute.algorithm(Algorithm::SlidingLog).build()?,
            at_once.burst(self.burst).build()?,
        ])
    }

    fn rule(self) -> Result<Rule, ValidationError> {
        let [per_minute, at_once] = self.quotas()?;
        Ok(Rule::new(per_minute).quota(at_once))
    }

    /// Name of the tier for these limits. Tenants with equal limits share a tier, but no counter.
    fn tier(self) -> String {
        format!("{}-per-minute-{}-at-once", self.per_minute, self.burst)
    }
}

/// Builds the policy from the JSON text of a tenant file.
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

/// Builds the layer. It adds `X-RateLimit-…` headers; its 429 has the trace id of the request.
async fn limits(tokens: Jwt) -> RateLimitLayer {
    const SHAPE: &str = r#"{"default": {"rateLimit": {"perMinute": 60, "burst": 10}}, …}"#;
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/tenant_chat.json");
    let file = env::var_os("TENANT_CONFIG").unwrap_or_else(|| beside.into());
    let store = common::store("tenant-chat", Duration::from_secs(1)).await;
    let layer = || -> Result<RateLimitLayer, Box<dyn Error>> {
        let policy = policy(&fs::read_to_string(&file)?)?;
        let layer = RateLimitLayer::builder(policy).identify(tokens);
        Ok(layer.store(store).build()?)
    };
    layer().unwrap_or_else(|wrong| {
        let allowed = format!("a file of the form `{SHAPE}`; error: {wrong}");
        common::refuse("TENANT_CONFIG", &file.to_string_lossy(), &allowed)
    })
}

/// Returns the message it received.
async fn chat(body: Bytes) -> Json<Value> {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    Json(json!({ "reply": request["message"].as_str().unwrap_or("Hello!") }))
}

fn tokens(secret: &str) -> JwtBuilder {
    Jwt::hs256(secret).tenant("tenant_id")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt()
        .with_max_level(common::setting(
            "LOG_LEVEL",
            "info",
            "error, warn, info, debug or trace",
            |text| text.parse::<Level>().ok(),
        ))
        .with_writer(io::stderr)
        .init();
    let secret = common::setting(
        "JWT_SECRET",
        "development-only secret",
        "a secret that is not empty and not a PEM text",
        |text| tokens(text).build().ok().map(|_| text.to_owned()),
    );
    let app = Router::new()
        .route("/chat", post(chat))
        .layer(limits(tokens(&secret).build()?).await);
    // A token to try it with, valid for a day.
    let exp = get_current_timestamp() + 24 * 60 * 60;
    let claims = json!({ "sub": "alice", "tenant_id": "acme", "exp": exp });
    let key = EncodingKey::from_secret(secret.as_bytes());
    let token = encode(&Header::default(), &claims, &key)?;
    let (listener, stopped) = common::listen().await;
    common::print(&what_to_try(listener.local_addr()?, &token));
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let server = axum::serve(listener, app).with_graceful_shutdown(stopped);
    Ok(server.await?)
}

fn what_to_try(server: SocketAddr, token: &str) -> String {
    format!(
        "
User alice of tenant acme:

    curl -i -X POST http://{server}/chat -H 'Authorization: Bearer {token}'

Without a token, counted per client IP in tenant public:

    curl -i -X POST 'http://{server}/chat?[1-4]'

"
    )
}
