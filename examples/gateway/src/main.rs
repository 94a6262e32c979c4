//! An API gateway with a policy file: limits per endpoint and category, tiers, logins that do not scale
//! with tiers, status endpoint, metrics, dashboard.
//!
//! ```sh
//! cargo run -p example-gateway
//! ```
//!
//! The limits are in `gateway.toml` of this package. Changes of the file apply while the program runs.
//!
//! | variable | meaning |
//! |---|---|
//! | `PORT` | Port. 0 is any free port. Default: 3000 |
//! | `JWT_SECRET` | Secret of the tokens (HS256). Claims: `sub`, `app_metadata.plan`, `roles` |
//! | `TOLLGATE_CONFIG` | Policy file. Default: `gateway.toml` of this package |
//! | `REDIS_URL` | Redis server that instances share. Default: count in memory |
//! | `ADMIN_TOKEN` | Token of the dashboard and the admin API. Default: random and printed, unless `ADMIN_TOKENS` is set |
//! | `ADMIN_TOKENS` | Tokens with names and roles: `alice:write:secret-1,grafana:read:secret-2`. A role is `read` or `write` |
//! | `TRUSTED_PROXIES` | Networks whose `X-Forwarded-For` is used, separated by commas |
//! | `LOG_FORMAT` | `text`, or `json` for one JSON object per line. Default: `text` |
//! | `LOG_IDENTITIES` | `hashed`, or `plain` for users and addresses as they are. Default: `hashed` |
//! | `ALERT_WEBHOOK_URL` | URL that alerts are sent to, with retries. Default: none |
//! | `ALERT_FORMAT` | `json`, `slack` (incoming webhook) or `pagerduty` (Events API v2). Default: `json` |
//! | `ALERT_PAGERDUTY_KEY` | Integration key of the `PagerDuty` service |
//! | `ALERT_MIN_SEVERITY` | `low`, `medium`, `high` or `critical`. Default: `low`; for `PagerDuty` `high` |
//! | `HOSTNAME` | Host name in `PagerDuty` incidents. Default: that of `/etc/hostname` |
//! | `TOLLGATE_…` | Overrides a setting of the file: `TOLLGATE_GLOBAL__ANONYMOUS=50/hour` |
//!
//! Alerts are sent by a task of their own, and no request waits for them. At most 100 wait; further ones
//! are dropped and logged. Alerts that wait when the process ends are not delivered. An alert about one
//! caller contains the caller's name.
//!
//! Each instance opens and resolves its own incidents in `PagerDuty`. An instance is a host name and a
//! port: `web-1:3000`. If an instance ends while it has an open incident, resolve the incident in
//! `PagerDuty`.

mod admin_tokens;
mod alerts;
#[path = "../../common/mod.rs"]
mod common;
mod logs;

use std::env;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::MatchedPath;
use axum::http::Method;
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::{Value, json};
use tollgate::RateLimitLayer;
use tollgate::admin::{Admin, Status};
use tollgate::config::Config;
use tollgate::identity::{ClientIp, Jwt, JwtBuilder};

use self::admin_tokens::AdminTokens;
use self::alerts::Webhook;

/// Handler of all endpoints: returns the route that matched.
async fn answer(method: Method, route: MatchedPath) -> Json<Value> {
    Json(json!({ "ok": true, "endpoint": format!("{method} {}", route.as_str()) }))
}

fn api() -> Router {
    Router::new()
        .route("/health", get(answer))
        .route("/v1/api-service-info", get(answer))
        .route("/auth/v1/token", post(answer))
        .route("/auth/v1/signup", post(answer))
        .route("/auth/v1/recover", post(answer))
        .route("/auth/v1/refresh", post(answer))
        .route("/auth/v1/logout", post(answer))
        .route("/auth/v1/user", put(answer))
        .route("/auth/v1/mfa/enroll", post(answer))
        .route("/auth/v1/mfa/verify", post(answer))
        .route("/v1/secrets", get(answer).post(answer))
        .route("/v1/secrets/{id}", get(answer).put(answer).delete(answer))
        .route("/v1/secrets/{id}/rotate", post(answer))
        .route("/v1/projects", get(answer).post(answer))
        .route("/v1/projects/{id}", get(answer).put(answer).delete(answer))
        .route("/v1/projects/{id}/secrets", get(answer))
        .route("/v1/projects/{id}/members", post(answer))
        .route("/v1/mcp/secrets/list", post(answer))
        .route("/v1/mcp/secrets/get", post(answer))
        .route("/v1/mcp/secrets/request", post(answer))
        .route("/v1/mcp/secrets/search", post(answer))
        .route("/v1/mcp/approvals", post(answer))
        .route("/v1/ai/chat", post(answer))
        .route("/v1/ai/research", post(answer))
        .route("/v1/ai/conversations", get(answer))
        .route("/v1/ai/conversations/{id}", delete(answer))
        .route("/v1/audit-logs", get(answer))
        .route("/v1/compliance/reports", post(answer))
        .route("/v1/compliance/exports", get(answer))
}

/// Builds the layer from the policy file, and watches the file.
async fn limits(tokens: Jwt) -> Result<RateLimitLayer, Box<dyn Error>> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/gateway.toml");
    let file = env::var_os("TOLLGATE_CONFIG").unwrap_or_else(|| beside.into());
    let config = Config::from_file(&file).unwrap_or_else(|problems| {
        eprintln!("{problems}\n");
        if problems
            .problems()
            .all(|problem| problem.variable().is_some())
        {
            // The problems are in environment variables, not in the file.
            std::process::exit(2);
        }
        let allowed = "the path of a policy file without the problems above";
        common::refuse("TOLLGATE_CONFIG", &file.to_string_lossy(), allowed)
    });
    let limits = config.into_layer().identify(tokens);
    let limits = match trusted_proxies() {
        Some(client_ip) => limits.client_ip(client_ip),
        None => limits,
    };
    // While Redis is unavailable, this process counts by itself.
    let limits = limits.store(common::store("gateway", Duration::from_millis(50)).await);
    let limits = if logs::shows_identities() {
        limits.log_plain_identities()
    } else {
        limits
    };
    let limits = limits.build()?;
    limits.watch()?;
    Ok(limits)
}

fn trusted_proxies() -> Option<ClientIp> {
    env::var_os("TRUSTED_PROXIES")?;
    let allowed = "networks or addresses, separated by commas, such as `10.0.0.0/8,127.0.0.1`";
    let client_ip = common::setting("TRUSTED_PROXIES", "", allowed, |text| {
        let networks = text.split(',').map(str::trim);
        let networks = networks.filter(|network| !network.is_empty());
        ClientIp::builder().trusted_proxies(networks).build().ok()
    });
    Some(client_ip)
}

/// Status endpoint, metrics and dashboard. They are outside of the limits, so that a caller without
/// quota can still see why.
fn monitoring(limits: &RateLimitLayer, tokens: &AdminTokens) -> Result<Router, Box<dyn Error>> {
    let recorder = PrometheusBuilder::new().install_recorder()?;
    let layer = limits.clone();
    let metrics = async move || {
        // Gauges of the last hour and the health of the store also change without requests.
        layer.refresh_metrics();
        recorder.render()
    };
    Ok(Router::new()
        .merge(Status::new(limits).router()?)
        .route("/metrics", get(metrics))
        .nest_service("/admin", tokens.add_to(Admin::new(limits)).router()?))
}

fn tokens(secret: &str) -> JwtBuilder {
    Jwt::hs256(secret).tier("app_metadata.plan").roles("roles")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Denials and exemptions are logged to standard error.
    logs::init();
    let secret = common::setting(
        "JWT_SECRET",
        "development-only secret",
        "a secret that is not empty and not a PEM text",
        |text| tokens(text).build().ok().map(|_| text.to_owned()),
    );
    let admin_tokens = AdminTokens::from_env();
    let webhook = Webhook::from_env();
    let limits = limits(tokens(&secret).build()?).await?;
    // The API is merged last: axum keeps the fallback of the later router, and requests for unknown
    // paths must be counted.
    let app = monitoring(&limits, &admin_tokens)?
        .merge(api().layer(limits.clone()))
        .into_make_service_with_connect_info::<SocketAddr>();

    let (listener, stop) = common::listen().await;
    let address = listener.local_addr()?;
    if let Some(webhook) = webhook {
        webhook.deliver(&limits, address);
    }
    common::print(&what_to_try(address, &secret)?);
    common::print(&where_to_look(address, &admin_tokens));
    let server = axum::serve(listener, app).with_graceful_shutdown(stop.received());
    let shutdown = |deadline| limits.shutdown(deadline);
    Ok(stop.run(server.into_future(), shutdown).await?)
}

fn what_to_try(server: SocketAddr, secret: &str) -> Result<String, Box<dyn Error>> {
    // A token to try it with, valid for a day.
    let exp = get_current_timestamp() + 24 * 60 * 60;
    let claims = json!({ "sub": "alice", "app_metadata": { "plan": "team" }, "exp": exp });
    let key = EncodingKey::from_secret(secret.as_bytes());
    let token = encode(&Header::default(), &claims, &key)?;
    let development = if env::var_os("JWT_SECRET").is_none() {
        format!("\nJWT_SECRET is not set. Tokens are signed with \"{secret}\".\n")
    } else {
        String::new()
    };
    Ok(format!(
        "{development}
Secrets can be read 500 times per hour. The tier of Alice, `team`, has five times that:

    curl -i http://{server}/v1/secrets/42 -H 'Authorization: Bearer {token}'

MCP endpoints have an explicit limit for each tier, here 200 and 1000:

    curl -i -X POST http://{server}/v1/mcp/secrets/get -H 'Authorization: Bearer {token}'

Ten logins per hour in every tier. The eleventh gets 429:

    curl -i -X POST 'http://{server}/auth/v1/token?[1-11]'

"
    ))
}

fn where_to_look(server: SocketAddr, tokens: &AdminTokens) -> String {
    let development = match tokens.random() {
        Some(token) => format!("ADMIN_TOKEN is not set. Token of this run: {token}\n"),
        None => String::new(),
    };
    format!(
        "{development}Dashboard: http://{server}/admin
Metrics: http://{server}/metrics
Limits of the caller: http://{server}/v1/rate-limits/status
"
    )
}
