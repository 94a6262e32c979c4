//! The layer around a service: [`RateLimitLayer`].

mod builder;

use std::fmt;
use std::sync::Arc;

use tower_layer::Layer;

use crate::clock::Timestamp;
use crate::error::{Error, ReloadError, ValidationErrors};
use crate::key::Subject;
use crate::observe::{Alert, Statistics};
use crate::pipeline::{PolicyStatus, RequestPipeline};
use crate::policy::IntoPolicy;
use crate::service::RateLimit;
use crate::store::{Override, StoreFuture};

pub use self::builder::RateLimitLayerBuilder;

/// Limits the requests to a service: a [`Layer`] for axum, hyper, tonic and everything else
/// that is a tower service over HTTP.
///
/// ```
/// # #[cfg(feature = "axum")] {
/// use axum::{Router, routing::get};
/// use tollgate::RateLimitLayer;
///
/// let app: Router = Router::new()
///     .route("/", get(|| async { "hello" }))
///     .layer(RateLimitLayer::new("100/minute")?);
/// # }
/// # Ok::<(), tollgate::ValidationErrors>(())
/// ```
///
/// With rules for routes and tiers, and callers known by a token:
///
/// ```
/// # #[cfg(feature = "jwt")] {
/// use tollgate::RateLimitLayer;
/// use tollgate::headers::HeaderSet;
/// use tollgate::identity::Jwt;
/// use tollgate::policy::{Policy, Rule, Tiers};
///
/// let policy = Policy::builder()
///     .tiers(Tiers::new("free").tier("team", 5))
///     .authenticated("1000/hour")
///     .anonymous("100/hour")
///     .endpoint("POST /login", Rule::new("10/hour").name("login").per(["ip"]).unscaled());
///
/// let limits = RateLimitLayer::builder(policy)
///     .identify(Jwt::hs256("a secret of at least 32 characters").tier("app_metadata.plan").build()?)
///     .trusted_proxies(["10.0.0.0/8"])
///     .headers(HeaderSet::Both)
///     .build()?;
/// # let _ = limits;
/// # }
/// # Ok::<(), tollgate::Error>(())
/// ```
///
/// # Where to put it
///
/// Clones share their counters, and so do all services that one layer was put around: axum
/// calls it once for each route and method, and a limit is still one limit.
///
/// - `Router::layer` puts it inside the router: after routing, around each handler. Layers added
///   *later* run *earlier*, so add authentication, tracing and CORS after it.
/// - Around the whole router (`ServiceBuilder::new().layer(limits).service(router)`) it is
///   cheaper, since axum boxes what is added route by route, and it also counts what no route
///   matches. Rules for routes match the path themselves there.
/// - In one place only: a layer that is both on a nested router and on the outer one charges its
///   requests twice.
///
/// # The address of the client
///
/// Whoever is not authenticated is known by address, so the server has to tell it: with axum,
/// `into_make_service_with_connect_info::<SocketAddr>()`; with hyper, a
/// [`PeerAddr`](crate::identity::PeerAddr) in the extensions; tonic does it by itself. Where
/// nobody does, all anonymous callers share one counter, and a warning says so, once. Behind a
/// proxy the address is the proxy's, until [`trusted_proxies`](RateLimitLayerBuilder::trusted_proxies)
/// names it.
///
/// # What it does not do
///
/// It never looks at a body, and does not shed load: requests that are allowed run all at once.
#[derive(Clone)]
pub struct RateLimitLayer {
    pipeline: Arc<RequestPipeline>,
}

impl RateLimitLayer {
    /// A layer for this policy, or for this one quota per caller, counted in memory.
    pub fn new(policy: impl IntoPolicy) -> Result<Self, ValidationErrors> {
        Self::builder(policy).build()
    }

    /// A layer with settings.
    pub fn builder(policy: impl IntoPolicy) -> RateLimitLayerBuilder {
        RateLimitLayerBuilder::new(policy.into_policy())
    }
}

/// While it runs. All clones share what is changed.
impl RateLimitLayer {
    /// Puts another policy in place, for the next request on. No count is lost: counters are
    /// found by the names of their rules, by window and by algorithm. If the policy is wrong, nothing
    /// changes.
    ///
    /// ```
    /// use tollgate::RateLimitLayer;
    ///
    /// let limits = RateLimitLayer::new("100/minute")?;
    /// let status = limits.replace_policy("200/minute")?;
    /// assert_eq!(status.version(), 2);
    /// assert!(limits.replace_policy("0/minute").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replace_policy(&self, policy: impl IntoPolicy) -> Result<PolicyStatus, ReloadError> {
        self.pipeline.replace(policy.into_policy())
    }

    /// Reads the policy again from the file that it came from. If the file is wrong, nothing
    /// changes.
    pub fn reload(&self) -> Result<PolicyStatus, ReloadError> {
        self.pipeline.reload()
    }

    #[cfg(any(feature = "admin", feature = "config"))]
    pub(crate) const fn pipeline(&self) -> &Arc<RequestPipeline> {
        &self.pipeline
    }

    /// Which policy is in force, and whether the last attempt to replace it failed.
    #[must_use]
    pub fn policy_status(&self) -> PolicyStatus {
        self.pipeline.policy_status()
    }

    /// Sets another limit for one subject under one rule, in the store: for all who share it,
    /// within a second.
    ///
    /// ```
    /// use tollgate::{Override, RateLimitLayer};
    ///
    /// let limits = RateLimitLayer::new("100/minute")?;
    /// limits.set_override(Override::new([("user", "ada")], "global", "500/minute")?).wait()?;
    /// assert_eq!(limits.overrides().len(), 1);
    ///
    /// assert!(limits.remove_override([("user", "ada")], "global").wait()?);
    /// assert!(limits.overrides().is_empty());
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn set_override(&self, new: Override) -> StoreFuture<(), Error> {
        self.pipeline.set_override(new)
    }

    /// Removes the limits that were set for a subject under a rule, and says whether there were
    /// any.
    pub fn remove_override<'a>(
        &self,
        subject: impl Into<Subject<'a>>,
        rule: &str,
    ) -> StoreFuture<bool, Error> {
        self.pipeline.remove_override(subject.into(), rule)
    }

    /// The limits that were set at run time and still apply.
    #[must_use]
    pub fn overrides(&self) -> Vec<Override> {
        self.pipeline.overrides()
    }

    /// Switches all limits off until then, in the store: for all who share it, within a second.
    /// They come back by themselves, and each request that is let through uncounted leaves an
    /// event for the audit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Clock, ManualClock, RateLimitLayer};
    ///
    /// let clock = ManualClock::new();
    /// let limits = RateLimitLayer::builder("100/minute").clock(clock.clone()).build()?;
    /// let in_an_hour = clock.now().saturating_add(Duration::from_hours(1));
    ///
    /// limits.start_maintenance(in_an_hour).wait()?;
    /// assert_eq!(limits.maintenance_until(), Some(in_an_hour));
    ///
    /// assert!(limits.end_maintenance().wait()?);
    /// assert_eq!(limits.maintenance_until(), None);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn start_maintenance(&self, until: Timestamp) -> StoreFuture<(), Error> {
        self.pipeline.start_maintenance(until)
    }

    /// Switches the limits on again, and says whether they were off by
    /// [`start_maintenance`](Self::start_maintenance). What the policy says
    /// ([`maintenance_until`](crate::policy::PolicyBuilder::maintenance_until)) stays.
    pub fn end_maintenance(&self) -> StoreFuture<bool, Error> {
        self.pipeline.end_maintenance()
    }

    /// Until when all limits are off, if they are: by the policy, or at run time.
    #[must_use]
    pub fn maintenance_until(&self) -> Option<Timestamp> {
        self.pipeline.maintenance_until().map(|(until, _)| until)
    }
}

/// For those who watch.
impl RateLimitLayer {
    /// What has been decided so far: how much, by which endpoints and quotas, who was turned
    /// away most often, which alerts are firing. See [`Statistics`].
    ///
    /// ```
    /// use tollgate::RateLimitLayer;
    ///
    /// let limits = RateLimitLayer::new("100/minute")?;
    /// let statistics = limits.statistics();
    /// println!("{} denied within an hour", statistics.denied_last_hour);
    /// for endpoint in statistics.endpoints.iter().take(10) {
    ///     println!("{}: {}", endpoint.name, endpoint.denied_last_day);
    /// }
    /// # Ok::<(), tollgate::ValidationErrors>(())
    /// ```
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.pipeline.statistics()
    }

    /// Tells a callback of every [`Alert`]: once when it begins, once when it is over. Those that
    /// are already firing are told at once.
    ///
    /// This is a future, which does nothing until it runs; spawn it where your callback can do
    /// what it has to. It looks once a second, also when there are no requests, and ends when
    /// the layer is gone. (Without it, alerts are still told as events, when there are
    /// requests.) No request ever waits for the callback: while it is busy, alerts are kept for
    /// it, up to a thousand. If it panics, it is called again for the next.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), tollgate::ValidationErrors> {
    /// use tollgate::RateLimitLayer;
    /// use tollgate::observe::Severity;
    ///
    /// let limits = RateLimitLayer::new("100/minute")?;
    /// tokio::spawn(limits.on_alert(|alert| async move {
    ///     let channel = if alert.severity() >= Severity::High { "incidents" } else { "ops" };
    ///     println!("to {channel}: {alert}");
    /// }));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "a future does nothing until it runs: spawn it"]
    pub fn on_alert<F, R>(&self, callback: F) -> impl Future<Output = ()> + Send + use<F, R>
    where
        F: FnMut(Alert) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.pipeline.tell_alerts(callback)
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimit<S>;

    fn layer(&self, inner: S) -> RateLimit<S> {
        RateLimit::new(inner, Arc::clone(&self.pipeline))
    }
}

impl fmt::Debug for RateLimitLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RateLimitLayer")
            .field(&self.pipeline)
            .finish()
    }
}
