//! The shortest useful program: an API that knows its callers by token and limits them all.
//!
//! ```sh
//! cargo run --example quickstart
//! ```
//!
//! `PORT` (3000; 0 is any free one), `JWT_SECRET` and `REDIS_URL` (else it counts in memory) can be
//! set.

mod common;
#[path = "common/store.rs"]
mod store;
#[path = "common/token.rs"]
mod token;

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use tollgate::identity::Jwt;
use tollgate::policy::{Policy, Rule, Tiers};
use tollgate::{RateLimitLayer, Store};

fn app(secret: &str, store: impl Store) -> Result<Router, tollgate::Error> {
    let policy = Policy::builder()
        .tiers(Tiers::new("free").tier("team", 5))
        .authenticated("100/hour")
        .anonymous("20/hour")
        .endpoint("POST /reports", Rule::new("3/minute").name("reports"));

    let limits = RateLimitLayer::builder(policy)
        .identify(Jwt::hs256(secret).tier("plan").build()?)
        .store(store)
        .build()?;

    Ok(Router::new()
        .route("/", get(|| async { "hello\n" }))
        .route("/reports", post(|| async { "here is your report\n" }))
        .layer(limits))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let secret = common::setting(
        "JWT_SECRET",
        "for development only, known to everybody",
        "a secret, which is neither empty nor a PEM text",
        |text| Jwt::hs256(text).build().ok().map(|_| text.to_owned()),
    );
    // The address of a caller is what the anonymous are counted by.
    let store = store::store("quickstart", Duration::from_millis(50));
    let app = app(&secret, store)?.into_make_service_with_connect_info::<SocketAddr>();

    let (listener, stopped) = common::listen().await;
    common::say(&what_to_try(listener.local_addr()?, &secret)?);
    axum::serve(listener, app)
        .with_graceful_shutdown(stopped)
        .await?;
    Ok(())
}

fn what_to_try(server: SocketAddr, secret: &str) -> Result<String, Box<dyn Error>> {
    let claims = serde_json::json!({ "sub": "alice", "plan": "team" });
    let token = token::token(secret, claims)?;
    let development = if std::env::var_os("JWT_SECRET").is_none() {
        format!("\nJWT_SECRET is not set. Tokens are signed with \"{secret}\".\n")
    } else {
        String::new()
    };
    Ok(format!(
        "{development}
Alice has 100 requests an hour, times 5 because her team pays; the headers say what is left:

    curl -i http://{server}/ -H 'Authorization: Bearer {token}'

Anybody may ask for three reports a minute; the fourth is one too many:

    curl -i -X POST 'http://{server}/reports?[1-4]'

"
    ))
}
