//! A store for Redis as most services want it.

use std::sync::Arc;

use super::{RedisStore, RedisStoreBuilder};
use crate::error::Invalid;
use crate::store::{CircuitBreaker, DenyCache, Store};

impl RedisStore {
    /// Counts in the Redis at this URL, with all that a service in production wants around it:
    ///
    /// - a [`DenyCache`], so that those who hammer while they are blocked cost Redis nothing;
    /// - a [`CircuitBreaker`], so that an outage costs a few requests the deadline and all others
    ///   nothing, and is over for us as soon as it is over.
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
    /// Redis need not be there: the store comes up without it, and finds it when it is. Has to be
    /// called on a tokio runtime. For other settings see [`RedisStoreBuilder::connect`].
    pub fn connect(url: &str) -> Result<Arc<dyn Store>, Invalid> {
        Self::builder(url).connect()
    }
}

impl RedisStoreBuilder {
    /// The same as [`RedisStore::connect`], with these settings.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use tollgate::RedisStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), tollgate::Invalid> {
    /// let store = RedisStore::builder("redis://localhost:6379")
    ///     .prefix("shop")
    ///     .deadline(Duration::from_millis(20))
    ///     .connect()?;
    /// # let _ = store;
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect(self) -> Result<Arc<dyn Store>, Invalid> {
        // Its calls have a deadline already.
        let failover = CircuitBreaker::builder(self.build()?)
            .without_deadline()
            .build()?;
        Ok(Arc::new(DenyCache::new(failover)))
    }
}
