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
//! - `POST /chat` takes `{"message"}` and returns it. Responses report the limit per minute, or the burst
//!   if that denies: policies `tenant+user:global:1m` and `tenant+user:burst:1m`.
//! - `POST /check` takes `{"limit", "windowSec"}`, counts one request of the caller in a sliding window, and
//!   returns `{"allowed", "remaining", "resetAt"}` (Unix milliseconds). `limit` is 1 to 1000, `windowSec`
//!   1 to 3600.
//!
//! Requests without a token count per client IP (IPv6: per /64 network), with the limits of tenant
//! `public`. Tenants that are not in the file have the limits of `default`. A client IP may send 60 wrong
//! tokens per minute to each endpoint.

mod common;

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use tollgate::identity::{ClientIp, Identified, Identify, IdentifyContext, Jwt, JwtBuilder};
use tollgate::policy::{Policy, PolicyBuilder, Rule, Tiers};
use tollgate::tier::TierResolver;
use tollgate::{
    Algorithm, Clock, Identity, Limiter, MemoryStore, Quota, RateLimitLayer, RequestHead, Store,
    SystemClock, ValidationErrors, Window,
};
use tracing::Level;

/// What limits count per.
const MEMBER: [&str; 2] = ["tenant", "user"];

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
    /// Returns an exact sliding window of one minute.
    fn window(self) -> Result<Quota, ValidationErrors> {
        let quota = Quota::builder(self.per_minute, Window::MINUTE);
        quota.algorithm(Algorithm::SlidingLog).build()
    }

    /// Returns a token bucket for what may come at once. It refills at the rate of the window.
    fn burst(self) -> Result<Quota, ValidationErrors> {
        let quota = Quota::builder(self.per_minute, Window::MINUTE).burst(self.burst);
        quota.algorithm(Algorithm::TokenBucket).build()
    }

    /// Name of the tier for these limits. Tenants with equal limits share a tier, but no counter.
    fn tier(self) -> String {
        format!("{}-per-minute-{}-at-once", self.per_minute, self.burst)
    }
}

/// The limits of the tenants.
struct Tenants {
    limits: BTreeMap<String, RateLimit>,
    /// Of tenants that are not in the file.
    default: RateLimit,
}

impl Tenants {
    fn from_json(json: &str) -> Result<Self, Box<dyn Error>> {
        let tenants: BTreeMap<String, Tenant> = serde_json::from_str(json)?;
        let limits = tenants.into_iter();
        let limits: BTreeMap<_, _> = limits.map(|(name, of)| (name, of.rate_limit)).collect();
        let default = limits
            .get("default")
            .ok_or("there is no tenant `default`")?;
        Ok(Self {
            default: *default,
            limits,
        })
    }

    /// Builds the policy. A request needs room in the window, which is the global rule, and in the
    /// burst, which is the rule of the endpoint. The burst is quiet: responses report the window,
    /// unless the burst denies.
    fn policy(&self) -> Result<PolicyBuilder, Box<dyn Error>> {
        // Callers without a token have the default tier.
        let public = *self.limits.get("public").unwrap_or(&self.default);
        let mut tiers = Tiers::new(public.tier());
        let mut window = Rule::new(public.window()?).per(MEMBER);
        let mut burst = Rule::new(public.burst()?).per(MEMBER);
        let mut known = HashSet::from([public.tier()]);
        for (name, limits) in &self.limits {
            let tier = limits.tier();
            tiers = tiers.tier(&tier, 1).assign("tenant", name, &tier);
            if known.insert(tier.clone()) {
                let wrong = |wrong| format!("{name}: {wrong}");
                window = window.tier(&tier, [limits.window().map_err(wrong)?]);
                burst = burst.tier(tier, [limits.burst().map_err(wrong)?]);
            }
        }
        Ok(Policy::builder()
            .tiers(tiers)
            .authenticated(window)
            .anonymous(public.window()?)
            .endpoint("POST /chat", burst.name("burst").quiet(true)))
    }

    /// Returns the tier of a user whose tenant is not in the file.
    fn tier_of_others(&self) -> Result<TierResolver, ValidationErrors> {
        let tier = self.default.tier();
        TierResolver::builder(move |_| std::future::ready(Ok::<_, Infallible>(Some(tier.clone()))))
            .build()
    }
}

/// Builds the layer. It adds `X-RateLimit-…` headers; its 429 has the trace id of the request.
fn limits(tokens: Arc<Jwt>, store: Arc<dyn Store>) -> RateLimitLayer {
    const SHAPE: &str = r#"{"default": {"rateLimit": {"perMinute": 60, "burst": 10}}, …}"#;
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/tenant_chat.json");
    let file = env::var_os("TENANT_CONFIG").unwrap_or_else(|| beside.into());
    let layer = || -> Result<RateLimitLayer, Box<dyn Error>> {
        let tenants = Tenants::from_json(&fs::read_to_string(&file)?)?;
        let layer = RateLimitLayer::builder(tenants.policy()?).identify(tokens);
        let layer = layer.tier_resolver(tenants.tier_of_others()?);
        Ok(layer.store(store).build()?)
    };
    layer().unwrap_or_else(|wrong| {
        let allowed = format!("a file of the form `{SHAPE}`; error: {wrong}");
        common::refuse("TENANT_CONFIG", &file.to_string_lossy(), &allowed)
    })
}

/// Checks a limit that the request names, for one user of a tenant, as the limiter object of the
/// original does.
struct Checks {
    tokens: Arc<Jwt>,
    /// Counters of these checks only: each window that a caller names is a counter of its own, and none
    /// may displace a counter of `/chat`.
    store: Arc<dyn Store>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CheckRequest {
    limit: u64,
    window_sec: u64,
}

/// Error with a status and a reason.
type Refused = (StatusCode, Json<Value>);

fn refused(status: StatusCode, why: &dyn Error) -> Refused {
    (status, Json(json!({ "error": why.to_string() })))
}

/// Returns the endpoint `POST /check`.
pub(crate) async fn checks(tokens: Arc<Jwt>) -> Result<Router, Box<dyn Error>> {
    // Counts wrong tokens. The quotas are those that requests name.
    let wrong_tokens = RateLimitLayer::builder(Quota::unlimited()).identify(Arc::clone(&tokens));
    let memory = MemoryStore::builder().capacity(Checks::COUNTERS).build()?;
    let store = common::store_or(memory, "tenant-chat-checks", Duration::from_secs(1)).await;
    Ok(Router::new()
        .route("/check", post(check))
        .layer(wrong_tokens.build()?)
        .with_state(Arc::new(Checks { tokens, store })))
}

/// Counts one request of the caller in the last `windowSec` seconds.
///
/// `resetAt` is in Unix milliseconds: the end of the caller's window if it is allowed, otherwise when
/// a request will be allowed.
async fn check(
    State(checks): State<Arc<Checks>>,
    head: Parts,
    body: Bytes,
) -> Result<Json<Value>, Refused> {
    let limiter = serde_json::from_slice(&body).map_err(Into::into);
    let limiter = limiter.and_then(|request| checks.limiter(&request));
    let limiter = limiter.map_err(|wrong| refused(StatusCode::BAD_REQUEST, &*wrong))?;
    let request = Request::from_parts(head, ());
    let head = RequestHead::of(&request);
    let caller = checks.identify(head);
    let member = caller.as_deref().and_then(|caller| {
        let user = caller.get(Identity::USER)?;
        Some([
            ("tenant", caller.get("tenant").unwrap_or_default()),
            ("user", user),
        ])
    });
    // Grouped as the layer does: IPv6 addresses by network.
    let address = ClientIp::default().locate(&head);
    let address = address.map_or_else(String::new, |client| client.group().to_string());
    let member = member.unwrap_or([("tenant", "public"), ("ip", &address)]);
    let decision = limiter.check(member).await;
    let decision = decision.map_err(|error| refused(StatusCode::SERVICE_UNAVAILABLE, &error))?;
    Ok(Json(json!({
        "allowed": decision.is_allowed(),
        "remaining": decision.remaining(),
        "resetAt": decision.reset_at().as_micros().div_ceil(1_000),
    })))
}

impl Checks {
    /// A sliding log stores each request of its window. The limit and the number of counters therefore
    /// bound the memory: 16 bytes * 1,000 * 10,000, about 160 MB. In Redis, counters expire.
    const LIMIT: RangeInclusive<u64> = 1..=1_000;
    const WINDOW_SEC: RangeInclusive<u64> = 1..=3_600;
    const COUNTERS: usize = 10_000;

    /// Returns a limiter for the limit of a request. Its counters are in the store.
    fn limiter(&self, request: &CheckRequest) -> Result<Limiter, Box<dyn Error>> {
        let limit = within("limit", request.limit, Self::LIMIT)?;
        let seconds = within("windowSec", request.window_sec, Self::WINDOW_SEC)?;
        let window = Window::new(Duration::from_secs(seconds))?;
        let quota = Quota::builder(limit, window).algorithm(Algorithm::SlidingLog);
        let limiter = Limiter::builder().name("check").quota(quota.build()?);
        Ok(limiter.store(Arc::clone(&self.store)).build()?)
    }

    /// Returns the caller of a request with a valid token.
    fn identify(&self, head: RequestHead<'_>) -> Option<Arc<Identity>> {
        let now = SystemClock::new().now();
        match self.tokens.identify(&IdentifyContext::new(head, None, now)) {
            Identified::Known(identity) => Some(identity),
            _ => None,
        }
    }
}

/// Returns the value of a field if it is allowed.
fn within(field: &str, value: u64, allowed: RangeInclusive<u64>) -> Result<u64, String> {
    if allowed.contains(&value) {
        return Ok(value);
    }
    let (least, most) = allowed.into_inner();
    Err(format!(
        "{field} is {value}. Allowed: a whole number from {least} to {most}"
    ))
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
    let tokens = Arc::new(tokens(&secret).build()?);
    let store = common::store("tenant-chat", Duration::from_secs(1)).await;
    let limits = limits(Arc::clone(&tokens), store);
    let app = Router::new()
        .route("/chat", post(chat))
        .layer(limits.clone())
        .merge(checks(tokens).await?);
    // A token to try it with, valid for a day.
    let exp = get_current_timestamp() + 24 * 60 * 60;
    let claims = json!({ "sub": "alice", "tenant_id": "acme", "exp": exp });
    let key = EncodingKey::from_secret(secret.as_bytes());
    let token = encode(&Header::default(), &claims, &key)?;
    let (listener, stop) = common::listen().await;
    common::print(&what_to_try(listener.local_addr()?, &token));
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let server = axum::serve(listener, app).with_graceful_shutdown(stop.received());
    let shutdown = |deadline| limits.shutdown(deadline);
    Ok(stop.run(server.into_future(), shutdown).await?)
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
