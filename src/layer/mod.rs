//! Tower layer: [`RateLimitLayer`].

mod builder;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

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

/// Tower [`Layer`] that limits the requests to an HTTP service: axum, hyper, tonic.
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
/// With rules for routes, tiers, and callers that are identified by a token:
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
///     .endpoint("POST /login", Rule::new("10/hour").name("login").per(["ip"]).scale(false));
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
/// # Position of the layer
///
/// Clones share their counters, and so do all services that one layer wraps. axum calls
/// [`Layer::layer`] once for each route and method; they share the limits.
///
/// - `Router::layer` wraps each handler, after routing. Layers that are added *later* run *earlier*, so
///   add authentication, tracing and CORS after it.
/// - Around the whole router (`ServiceBuilder::new().layer(limits).service(router)`), the layer is
///   cheaper, because axum boxes layers of routes. It also counts requests that no route matches.
///   Rules for routes match the path themselves.
/// - Add it once. A layer on a nested router and on the outer one charges requests twice.
///
/// # Client IP
///
/// Unauthenticated callers are limited by client IP. The server must provide the peer address: with
/// axum, `into_make_service_with_connect_info::<SocketAddr>()`; with hyper, a
/// [`PeerAddr`](crate::identity::PeerAddr) in the extensions; tonic provides it. Without it, all
/// unauthenticated callers share one counter, and a warning is logged once. Behind a proxy, the peer
/// address is that of the proxy; configure
/// [`trusted_proxies`](RateLimitLayerBuilder::trusted_proxies).
///
/// # Limitations
///
/// The layer does not read bodies, and it does not limit concurrency.
#[derive(Clone)]
pub struct RateLimitLayer {
    pipeline: Arc<RequestPipeline>,
}

impl RateLimitLayer {
    /// Creates a layer with a policy, or with one quota per caller, that counts in memory.
    pub fn new(policy: impl IntoPolicy) -> Result<Self, ValidationErrors> {
        Self::builder(policy).build()
    }

    /// Returns a builder.
    pub fn builder(policy: impl IntoPolicy) -> RateLimitLayerBuilder {
        RateLimitLayerBuilder::new(policy.into_policy())
    }
}

/// Changes at run time. All clones share them.
impl RateLimitLayer {
    /// Replaces the policy, from the next request on. Counters are kept if the name of the rule, the
    /// window and the algorithm are the same. If the policy is invalid, nothing changes.
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

    /// Reads the policy again from its file. If the file is invalid, nothing changes.
    pub fn reload(&self) -> Result<PolicyStatus, ReloadError> {
        self.pipeline.reload()
    }

    #[cfg(any(feature = "admin", feature = "config"))]
    pub(crate) const fn pipeline(&self) -> &Arc<RequestPipeline> {
        &self.pipeline
    }

    /// Returns the version of the policy, and the error of the last failed replacement.
    #[must_use]
    pub fn policy_status(&self) -> PolicyStatus {
        self.pipeline.policy_status()
    }

    /// Sets the limit of one subject under one rule, in the store. It reaches all processes that share
    /// the store within a second.
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

    /// Removes the limits that were set for a subject under a rule. Returns whether there were any.
    pub fn remove_override<'a>(
        &self,
        subject: impl Into<Subject<'a>>,
        rule: &str,
    ) -> StoreFuture<bool, Error> {
        self.pipeline.remove_override(subject.into(), rule)
    }

    /// Returns the overrides that apply.
    #[must_use]
    pub fn overrides(&self) -> Vec<Override> {
        self.pipeline.overrides()
    }

    /// Switches all limits off until `until`, in the store. This reaches all processes that share the
    /// store within a second. An audit event reports requests that pass uncounted.
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

    /// Ends the maintenance that [`start_maintenance`](Self::start_maintenance) has started. Returns
    /// whether there was one. The maintenance of the policy
    /// ([`disabled_until`](crate::policy::PolicyBuilder::disabled_until)) is not affected.
    pub fn end_maintenance(&self) -> StoreFuture<bool, Error> {
        self.pipeline.end_maintenance()
    }

    /// Returns the end of the maintenance that is active, by the policy or at run time.
    #[must_use]
    pub fn maintenance_until(&self) -> Option<Timestamp> {
        self.pipeline.maintenance_until().map(|(until, _)| until)
    }
}

/// Shutdown.
impl RateLimitLayer {
    /// Prepares the end of the process: refunds what the store has charged in advance
    /// ([`Leased`](crate::store::Leased)), and waits for the replies to refunds that were sent. Takes
    /// `deadline` at most. Call it after the last response.
    ///
    /// ```
    /// # #[cfg(feature = "axum")] {
    /// use std::time::Duration;
    /// use axum::{Router, routing::get};
    /// use tollgate::RateLimitLayer;
    ///
    /// async fn serve(
    ///     listener: tokio::net::TcpListener,
    ///     sigterm: impl Future<Output = ()> + Send + 'static,
    /// ) -> Result<(), Box<dyn std::error::Error>> {
    ///     let limits = RateLimitLayer::new("100/minute")?;
    ///     let app = Router::new().route("/", get(|| async { "hello" })).layer(limits.clone());
    ///     axum::serve(listener, app).with_graceful_shutdown(sigterm).await?;
    ///     limits.shutdown(Duration::from_secs(1)).await?;
    ///     Ok(())
    /// }
    /// # let _ = |listener| serve(listener, std::future::pending());
    /// # }
    /// ```
    ///
    /// Requests that arrive later are limited as before.
    ///
    /// # Errors
    ///
    /// A refund of what the store has charged in advance failed, or the deadline has expired. What is
    /// not refunded stays charged until its window ends. Errors of refunds that were sent before are not
    /// returned.
    pub fn shutdown(&self, deadline: Duration) -> StoreFuture<(), Error> {
        self.pipeline.shutdown(deadline)
    }
}

/// Statistics and alerts.
impl RateLimitLayer {
    /// Returns the statistics of this process: decisions by endpoint and quota, the callers with the
    /// most denials, firing alerts. See [`Statistics`].
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

    /// Updates all metrics to the present, also without requests: gauges of the last hour, the health
    /// of the store, counters of a store in memory. Call it before metrics are rendered. Also
    /// evaluates alerts.
    ///
    /// ```
    /// # use tollgate::RateLimitLayer;
    /// let limits = RateLimitLayer::new("100/minute")?;
    /// let render = || String::new(); // for example `PrometheusHandle::render`
    /// let metrics = move || {
    ///     limits.refresh_metrics();
    ///     render()
    /// };
    /// # metrics();
    /// # Ok::<(), tollgate::ValidationErrors>(())
    /// ```
    pub fn refresh_metrics(&self) {
        self.pipeline.refresh();
    }

    /// Calls a callback for every [`Alert`] when it begins and when it ends. Alerts that are firing are
    /// delivered first.
    ///
    /// The returned future does nothing until it is polled: spawn it. It evaluates alerts once a second,
    /// also without requests, and completes when the layer is dropped. Without it, alerts are logged
    /// as events, but only while there are requests. Requests do not wait for the callback. While it
    /// runs, up to a thousand alerts are queued. After a panic, it is called for the next alert.
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
    #[must_use = "the future does nothing until it is polled: spawn it"]
    pub fn on_alert<F, R>(&self, callback: F) -> impl Future<Output = ()> + Send + use<F, R>
    where
        F: FnMut(Alert) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.pipeline.deliver_alerts(callback)
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
