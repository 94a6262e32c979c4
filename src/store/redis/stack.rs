//! The usual stack of stores around Redis.

use std::sync::Arc;

use super::{RedisStore, RedisStoreBuilder};
use crate::error::{Error, ValidationErrors};
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

    /// Builds the stack of [`connect`](Self::connect), and verifies it for up to 2 seconds: waits for the
    /// result of the first attempt to connect, then runs the commands that every decision needs. Use it
    /// to end a program with a wrong configuration at its start.
    ///
    /// The commands run in a script on a key under the prefix that does not exist. They write nothing.
    ///
    /// # Errors
    ///
    /// Invalid settings, and errors that only a change of the configuration ends: the wrong choice
    /// between `redis://` and `rediss://`, an untrusted certificate, wrong or missing credentials, a
    /// missing permission, a database that the server rejects, protected mode, a server that is not
    /// Redis or not a sentinel. A server that is down, is loading, has too many clients or does not
    /// reply is no error; the store connects when it is up.
    pub async fn connect_and_verify(self) -> Result<Arc<dyn Store>, Error> {
        let store = self.build()?;
        match store.shared.configuration_error().await {
            Some(error) => Err(Error::Store(error.into())),
            None => Ok(Arc::new(DenyCache::new(store))),
        }
    }
}
