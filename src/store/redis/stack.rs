//! The usual stack of stores around Redis.

use std::sync::Arc;

use super::{RedisStore, RedisStoreBuilder};
use crate::error::{Error, StoreErrorKind, ValidationErrors};
use crate::store::{DenyCache, Store};

impl RedisStore {
    /// Connects to the Redis at this URL, with a [`DenyCache`] around the store: further requests
    /// of a denied caller are denied from the cache, without a call to Redis.
    ///
    /// The store itself has a deadline and a circuit breaker per server, see [`RedisStore`]. It
    /// needs no [`CircuitBreaker`](crate::store::CircuitBreaker) around it.
    ///
    /// ```no_run
    /// use tollgate::{RateLimitLayer, RedisStore};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), tollgate::Error> {
    /// let limits = RateLimitLayer::builder("100/minute")
    ///     .store(RedisStore::connect("redis://localhost:6379")?)
    ///     .build()?;
    /// # let _ = limits;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Redis may be down: the store starts without it, and connects when it is up. Must be called on
    /// a tokio runtime. For other settings see [`RedisStoreBuilder::connect`].
    pub fn connect(url: &str) -> Result<Arc<dyn Store>, ValidationErrors> {
        Self::builder(url).connect()
    }
}

impl RedisStoreBuilder {
    /// Builds the store with these settings, in the stack of [`RedisStore::connect`].
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use tollgate::RedisStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), tollgate::ValidationErrors> {
    /// let store = RedisStore::builder("redis://localhost:6379")
    ///     .prefix("shop")
    ///     .deadline(Duration::from_millis(20))
    ///     .connect()?;
    /// # let _ = store;
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect(self) -> Result<Arc<dyn Store>, ValidationErrors> {
        Ok(Arc::new(DenyCache::new(self.build()?)))
    }

    /// Builds the stack of [`connect`](Self::connect), and waits up to 2 seconds for the result of
    /// the first attempt to connect. Use it to end a program with a wrong configuration at its start.
    ///
    /// # Errors
    ///
    /// Invalid settings, and errors that only a change of the configuration ends: the wrong choice
    /// between `redis://` and `rediss://`, an untrusted certificate, wrong credentials. A server that
    /// is down or does not reply is no error; the store connects when it is up.
    pub async fn connect_and_verify(self) -> Result<Arc<dyn Store>, Error> {
        let store = self.build()?;
        let failing = store.shared.servers.first_attempt().await;
        let mut errors = failing.into_iter();
        if let Some(error) = errors.find(|error| error.kind() == StoreErrorKind::Permanent) {
            return Err(Error::Store(error.into()));
        }
        Ok(Arc::new(DenyCache::new(store)))
    }
}
