//! What the small services among the examples share: where they count, what they log, an end.

#[path = "store.rs"]
mod store;

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tollgate::Store;
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

/// Where to count. Mails and bots have more patience with Redis than web pages.
pub(crate) fn store(prefix: &str) -> Arc<dyn Store> {
    store::store(prefix, Duration::from_secs(1))
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
