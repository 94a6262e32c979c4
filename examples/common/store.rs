//! Where the examples count.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use tollgate::{MemoryStore, Store};

use crate::common;

/// In the Redis that `REDIS_URL` names, together with all who use the same prefix there; else in
/// memory.
pub(crate) fn store(prefix: &str, deadline: Duration) -> Arc<dyn Store> {
    match env::var_os("REDIS_URL") {
        Some(url) => in_redis(&url.to_string_lossy(), prefix, deadline),
        None => Arc::new(MemoryStore::new()),
    }
}

/// With a memory of denials, and a breaker: the first few who ask a Redis that hangs wait for it, all
/// others are told at once that it cannot be asked.
#[cfg(feature = "redis")]
fn in_redis(url: &str, prefix: &str, deadline: Duration) -> Arc<dyn Store> {
    let store = tollgate::RedisStore::builder(url)
        .prefix(prefix)
        .deadline(deadline)
        .connect();
    match store {
        Ok(store) => store,
        Err(wrong) => common::refuse("REDIS_URL", without_password(url), wrong.expected()),
    }
}

#[cfg(not(feature = "redis"))]
fn in_redis(url: &str, _: &str, _: Duration) -> Arc<dyn Store> {
    let allowed = "nothing, because this program was built without the feature `redis`";
    common::refuse("REDIS_URL", without_password(url), allowed)
}

/// What may be shown of it.
fn without_password(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, server)| server)
}
