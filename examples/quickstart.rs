//! An axum service with limits per user, per client IP and for one endpoint, counted in memory.
//! `cargo run --example quickstart` starts it. To copy it, `cargo add axum jsonwebtoken serde_json` and
//! `cargo add tokio --features macros,net,rt-multi-thread,signal`.

use std::{env, error::Error, io::Write, net::SocketAddr, process::exit};

use axum::{Router, routing::get, routing::post};
use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
use tokio::{net::TcpListener, signal};
use tollgate::policy::{Policy, Rule, Tiers};
use tollgate::{RateLimitLayer, identity::Jwt};

const DEVELOPMENT_SECRET: &str = "read yours from the environment";

fn app() -> Result<Router, tollgate::Error> {
    let reports = Rule::new("3/minute").name("reports").scale(false); // the same for every tier
    let policy = Policy::builder()
        .tiers(Tiers::new("free").tier("team", 5)) // tier `team`: five times the limit
        .authenticated("100/hour") // per user: the claim `sub` of a valid token
        .anonymous("20/hour") // per client IP: no valid token
        .endpoint("POST /reports", reports);
    let jwt = Jwt::hs256(DEVELOPMENT_SECRET).tier("plan").build()?; // tier: the claim `plan`
    let limits = RateLimitLayer::builder(policy).identify(jwt).build()?;
    Ok(Router::new()
        .route("/", get(|| async { "hello\n" }))
        .route("/reports", post(|| async { "report created\n" }))
        .layer(limits))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Provides the peer address, by which callers without a token are limited.
    let app = app()?.into_make_service_with_connect_info::<SocketAddr>();
    let port = env::var("PORT").unwrap_or("3000".into());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await;
    let listener = listener.unwrap_or_else(|error| {
        eprintln!("PORT={port:?}: {error}; expected a free port from 0 to 65535; 0 selects one");
        exit(2)
    });
    let url = format!("http://{}", listener.local_addr()?);
    let server = axum::serve(listener, app);
    #[cfg(unix)] // SIGTERM completes the open requests first
    let server = server.with_graceful_shutdown({
        let mut sigterm = signal::unix::signal(signal::unix::SignalKind::terminate())?;
        async move { _ = sigterm.recv().await }
    });
    let exp = get_current_timestamp() + 24 * 60 * 60; // a token to try it with
    let claims = serde_json::json!({ "sub": "alice", "plan": "team", "exp": exp });
    let key = EncodingKey::from_secret(DEVELOPMENT_SECRET.as_bytes());
    let token = encode(&Header::default(), &claims, &key)?;
    let text = format!(
        "listening on {url}\n
1. Allowed. Look for x-ratelimit-limit: 500 (tier `team`) and x-ratelimit-remaining: 499.
    curl -i {url}/ -H 'Authorization: Bearer {token}'\n
2. Four requests without a token. Three are allowed; look for 429 and retry-after in the last.
    curl -i -X POST '{url}/reports?[1-4]'\n\n"
    );
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(server.await?)
}
