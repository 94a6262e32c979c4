//! A whole API behind one file of limits: every endpoint with its number, tiers that have more,
//! logins that nobody can buy more of.
//!
//! ```sh
//! cargo run --example gateway --features admin,config,metrics,redis
//! ```
//!
//! The limits are in `gateway.toml` beside this file. Change it while the program runs, and they
//! are others. These can be set:
//!
//! | variable | |
//! |---|---|
//! | `PORT` | 3000; 0 is any free one |
//! | `JWT_SECRET` | what tokens are signed with (HS256); claims are `sub`, `app_metadata.plan`, `roles` |
//! | `TOLLGATE_CONFIG` | another file of limits |
//! | `REDIS_URL` | where to count, together with others; else in memory |
//! | `ADMIN_TOKEN` | what operators show at `/admin`; else a random one, which is printed |
//! | `TRUSTED_PROXIES` | networks whose `X-Forwarded-For` counts, separated by commas |
//! | `TOLLGATE_…` | single settings of the file, such as `TOLLGATE_GLOBAL__ANONYMOUS=50/hour` |

mod common;
#[path = "common/store.rs"]
mod store;
#[path = "common/token.rs"]
mod token;

use std::env;
use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::MatchedPath;
use axum::http::Method;
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::{Value, json};
use tollgate::RateLimitLayer;
use tollgate::admin::{Admin, Status};
use tollgate::config::Config;
use tollgate::identity::{ClientIp, Jwt, JwtBuilder};

/// Every endpoint says which one it is: what matters here is what is counted before.
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

/// The limits of the file, now and whenever it changes, for callers who are known by these
/// tokens.
fn limits(tokens: Jwt) -> Result<RateLimitLayer, Box<dyn Error>> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/gateway.toml");
    let file = env::var_os("TOLLGATE_CONFIG").unwrap_or_else(|| beside.into());
    let config = Config::from_file(&file).unwrap_or_else(|problems| {
        eprintln!("{problems}\n");
        if problems
            .problems()
            .all(|problem| problem.variable().is_some())
        {
            // They are named above, and there is nothing wrong with the file.
            std::process::exit(2);
        }
        let allowed = "the path of a file of limits, which has none of the problems above";
        common::refuse("TOLLGATE_CONFIG", &file.to_string_lossy(), allowed)
    });
    let limits = config.into_layer().identify(tokens);
    let limits = match trusted_proxies() {
        Some(client_ip) => limits.client_ip(client_ip),
        None => limits,
    };
    // If Redis is not there, the limits hold in this process until it is.
    let limits = limits.store(store::store("gateway", Duration::from_millis(50)));
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

/// What operators show: what is set, or one that nobody can guess.
fn admin_token() -> String {
    // A hash under a key that the system makes at random.
    let digits = || RandomState::new().hash_one("ADMIN_TOKEN");
    let random = format!("{:016x}{:016x}", digits(), digits());
    let allowed = "at least 8 visible characters of ASCII, without spaces";
    common::setting("ADMIN_TOKEN", &random, allowed, |text| {
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        (visible && text.len() >= 8).then(|| text.to_owned())
    })
}

/// Where callers and operators look. None of it is counted on the limits of the API: who has
/// used those up should still see why.
fn watching(limits: &RateLimitLayer, token: &str) -> Result<Router, Box<dyn Error>> {
    let recorder = PrometheusBuilder::new().install_recorder()?;
    let counted = limits.clone();
    let figures = async move || {
        // Some figures are of the last hour. They change also while there are no requests, and
        // are looked at with the statistics.
        drop(counted.statistics());
        recorder.render()
    };
    Ok(Router::new()
        .merge(Status::new(limits).router()?)
        .route("/metrics", get(figures))
        .nest_service("/admin", Admin::new(limits).token(token).router()?))
}

fn tokens(secret: &str) -> JwtBuilder {
    Jwt::hs256(secret).tier("app_metadata.plan").roles("roles")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Denials and exemptions are told on standard error.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let secret = common::setting(
        "JWT_SECRET",
        "for development only, known to everybody",
        "a secret, which is neither empty nor a PEM text",
        |text| tokens(text).build().ok().map(|_| text.to_owned()),
    );
    let token = admin_token();
    let limits = limits(tokens(&secret).build()?)?;
    // The API comes last: of two routers axum keeps what the later one says to paths that are
    // nowhere, and those who scan for some are to be counted.
    let app = watching(&limits, &token)?
        .merge(api().layer(limits))
        .into_make_service_with_connect_info::<SocketAddr>();

    let (listener, stopped) = common::listen().await;
    common::say(&what_to_try(listener.local_addr()?, &secret)?);
    common::say(&where_to_look(listener.local_addr()?, &token));
    axum::serve(listener, app)
        .with_graceful_shutdown(stopped)
        .await?;
    Ok(())
}

fn what_to_try(server: SocketAddr, secret: &str) -> Result<String, Box<dyn Error>> {
    let claims = json!({ "sub": "alice", "app_metadata": { "plan": "team" } });
    let token = token::token(secret, claims)?;
    let development = if env::var_os("JWT_SECRET").is_none() {
        format!("\nJWT_SECRET is not set. Tokens are signed with \"{secret}\".\n")
    } else {
        String::new()
    };
    Ok(format!(
        "{development}
Secrets can be read 500 times an hour; Alice's team pays for five times that:

    curl -i http://{server}/v1/secrets/42 -H 'Authorization: Bearer {token}'

Assistants have numbers of their own for each plan, here 200 and 1000:

    curl -i -X POST http://{server}/v1/mcp/secrets/get -H 'Authorization: Bearer {token}'

Logins are ten an hour, whatever one pays; the eleventh is one too many:

    curl -i -X POST 'http://{server}/auth/v1/token?[1-11]'

"
    ))
}

fn where_to_look(server: SocketAddr, token: &str) -> String {
    let development = if env::var_os("ADMIN_TOKEN").is_none() {
        format!("ADMIN_TOKEN is not set. Until this ends, it is {token}\n")
    } else {
        String::new()
    };
    format!(
        "{development}Operators look at http://{server}/admin, Prometheus at http://{server}/metrics,
and callers see how their limits stand at http://{server}/v1/rate-limits/status
"
    )
}
