//! Subscription tiers that are looked up asynchronously: [`TierResolver`].

mod builder;
mod cached_tier;
mod failure_log;
mod future;
mod lookup;
mod shared_lookup;

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quick_cache::sync::Cache;

pub use self::builder::TierResolverBuilder;
use self::cached_tier::{CacheAccess, CachedTier, CallerKey, CallerKeyRef};
use self::failure_log::FailureLog;
pub use self::future::TierFuture;
use self::lookup::look_up;
use self::shared_lookup::SharedLookup;
use crate::clock::{Clock, Timestamp};
use crate::identity_types::Identity;
use crate::sync::locked;

/// Looks up and caches the tiers of callers, for example in a database or behind an API.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Identity;
/// use tollgate::tier::TierResolver;
///
/// # async fn plan_of(user: &str) -> Result<Option<String>, std::io::Error> { Ok(None) }
/// let tiers = TierResolver::builder(|caller: Identity| async move {
///     let Some(user) = caller.get(Identity::USER) else {
///         return Ok(None);
///     };
///     plan_of(user).await // Result<Option<String>, …>
/// })
/// .deadline(Duration::from_millis(50))
/// .cache_ttl(Duration::from_secs(600))
/// .build()?;
/// # let _ = tiers;
/// # Ok::<(), tollgate::ValidationErrors>(())
/// ```
///
/// - A tier is cached for [`cache_ttl`](TierResolverBuilder::cache_ttl), for up to
///   [`cache_capacity`](TierResolverBuilder::cache_capacity) callers. The key of the cache is the
///   caller's [primary dimension](Identity::primary) with its [issuer](Identity::issuer).
/// - Concurrent requests of one caller share one look-up. It runs as long as one of them waits. A
///   request that arrives before its deadline joins it.
/// - A look-up that fails, panics or exceeds its [`deadline`](TierResolverBuilder::deadline) is
///   abandoned: the last known tier applies, else the default tier. The next look-up of this caller
///   starts after 5 s.
/// - The first failure after a success is logged (`tier_lookup_failed`), the failures after it are
///   not.
///
/// No task is spawned: the waiting requests poll the look-up. Cheap to clone; clones share the cache.
#[derive(Clone)]
pub struct TierResolver {
    state: Arc<ResolverState>,
}

struct ResolverState {
    find: Arc<FindTier>,
    clock: Arc<dyn Clock>,
    settings: Settings,
    cache: Cache<CallerKey, Arc<CachedTier>>,
    /// Held while an entry is inserted, so that concurrent requests of one caller get the same entry.
    inserting: Mutex<()>,
    failures: Arc<FailureLog>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    deadline: Duration,
    cache_ttl: Duration,
    cache_capacity: usize,
}

type FindTier = dyn Fn(Identity) -> FindTierFuture + Send + Sync;
type FindTierFuture = Pin<Box<dyn Future<Output = FindTierResult> + Send>>;
type FindTierResult = Result<Option<String>, Box<dyn Error + Send + Sync>>;

impl TierResolver {
    /// Looks up tiers with `find` and the default settings.
    ///
    /// `find` returns the name of the tier, or `None` for the default tier.
    pub fn new<F, L, E>(find: F) -> Self
    where
        F: Fn(Identity) -> L + Send + Sync + 'static,
        L: Future<Output = Result<Option<String>, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Self::builder(find).build_unchecked()
    }

    /// Looks up tiers with `find`, with settings.
    pub fn builder<F, L, E>(find: F) -> TierResolverBuilder
    where
        F: Fn(Identity) -> L + Send + Sync + 'static,
        L: Future<Output = Result<Option<String>, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        TierResolverBuilder::new(Arc::new(move |identity| {
            let lookup = find(identity);
            Box::pin(async move { lookup.await.map_err(Into::into) })
        }))
    }

    /// Returns a resolver with this closure and these settings, another clock and an empty cache.
    #[must_use]
    pub fn on_clock(&self, clock: Arc<dyn Clock>) -> Self {
        Self::from_parts(Arc::clone(&self.state.find), clock, self.state.settings)
    }

    fn from_parts(find: Arc<FindTier>, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        Self {
            state: Arc::new(ResolverState {
                find,
                clock,
                settings,
                cache: Cache::new(settings.cache_capacity),
                inserting: Mutex::default(),
                failures: Arc::default(),
            }),
        }
    }

    /// Returns the tier of a caller, from the cache or after a look-up. The look-up takes no longer
    /// than the deadline. An [unauthenticated](Identity::unauthenticated) caller has the default tier,
    /// without a look-up.
    pub fn tier(&self, identity: &Arc<Identity>, now: Timestamp) -> TierFuture {
        let Some(caller) = identity.counter_key() else {
            return TierFuture::Ready(None);
        };
        let cached = self.cached(caller);
        match cached.get_or_start(now, || self.start_lookup(identity, now)) {
            CacheAccess::Fresh(tier) => TierFuture::Ready(tier),
            CacheAccess::InFlight(lookup) => self.complete(cached, lookup),
        }
    }

    /// Returns the number of callers in the cache.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.cache.len()
    }

    /// Whether the cache is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn cached(&self, caller: (&str, &str)) -> Arc<CachedTier> {
        let cache = &self.state.cache;
        let key = CallerKeyRef(caller);
        if let Some(cached) = cache.get(&key) {
            return cached;
        }
        let _inserting = locked(&self.state.inserting);
        if let Some(cached) = cache.get(&key) {
            return cached;
        }
        let cached = Arc::new(CachedTier::default());
        cache.insert(key.to_key(), Arc::clone(&cached));
        cached
    }

    fn start_lookup(&self, identity: &Identity, now: Timestamp) -> Arc<SharedLookup> {
        let state = &self.state;
        let deadline = now.saturating_add(state.settings.deadline);
        let lookup = look_up(
            Arc::clone(&state.find),
            identity.clone(),
            state.clock.sleep_until(deadline),
            Arc::clone(&state.failures),
        );
        Arc::new(SharedLookup::new(lookup, deadline))
    }

    fn complete(&self, cached: Arc<CachedTier>, lookup: Arc<SharedLookup>) -> TierFuture {
        let clock = Arc::clone(&self.state.clock);
        let cache_ttl = self.state.settings.cache_ttl;
        TierFuture::Pending(Box::pin(async move {
            let result = SharedLookup::join(&lookup).await;
            cached.complete(&lookup, result, clock.now(), cache_ttl)
        }))
    }
}

/// Shows the settings. Never shows a caller.
impl fmt::Debug for TierResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TierResolver")
            .field("settings", &self.state.settings)
            .finish_non_exhaustive()
    }
}
