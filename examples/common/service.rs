//! What the small services among the examples share: where they count, what they log, an end.

use std::env;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use tollgate::{MemoryStore, Store};
use tracing::Level;

use crate::common;

/// Logs on standard error, from `LOG_LEVEL` on.
pub(crate) fn log() {
    let allowed = "error, warn, info, debug or trace";
    let level: Level = common::setting("LOG_LEVEL", "info", allowed, |text| text.parse().ok());
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        .init();
}

/// Where to count: in the Redis that `REDIS_URL` names, together with all who use the same prefix
/// there; else in memory.
pub(crate) fn store(prefix: &str) -> Arc<dyn Store> {
    match env::var_os("REDIS_URL") {
        Some(url) => in_redis(&url.to_string_lossy(), prefix),
        None => Arc::new(MemoryStore::new()),
    }
}

#[cfg(feature = "redis")]
fn in_redis(url: &str, prefix: &str) -> Arc<dyn Store> {
    use std::time::Duration;

    // With a memory of denials, and a breaker: the first few who ask a Redis that hangs wait for it,
    // all others are told at once that it cannot be asked.
    let store = tollgate::RedisStore::builder(url)
        .prefix(prefix)
        // Mails and bots have more patience than web pages.
        .deadline(Duration::from_secs(1))
        .connect();
    match store {
        Ok(store) => store,
        Err(wrong) => common::refuse("REDIS_URL", without_password(url), wrong.expected()),
    }
}

#[cfg(not(feature = "redis"))]
fn in_redis(url: &str, _: &str) -> Arc<dyn Store> {
    let allowed = "nothing, because this program was built without the feature `redis`";
    common::refuse("REDIS_URL", without_password(url), allowed)
}

/// What may be shown of it.
fn without_password(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, server)| server)
}

/// Serves until it is told to stop. What `hint` says about the address is printed below it.
pub(crate) async fn serve(
    app: Router,
    hint: impl FnOnce(SocketAddr) -> String,
) -> Result<(), Box<dyn Error>> {
    let (listener, stopped) = common::listen().await;
    common::say(&hint(listener.local_addr()?));
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, app)
        .with_graceful_shutdown(stopped)
        .await?;
    Ok(())
}
