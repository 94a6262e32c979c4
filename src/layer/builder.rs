//! Builder of a [`RateLimitLayer`].

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;

use super::RateLimitLayer;
use crate::clock::{Clock, SystemClock};
use crate::error::{ValidationError, ValidationErrors};
use crate::head::RequestHead;
use crate::headers::HeaderStyle;
use crate::identity::{ClientIp, Custom, Identify, OnInvalidCredentials};
use crate::identity_types::Identity;
use crate::observe::{Alerts, Pseudonyms, TelemetrySettings};
use crate::pipeline::{LayerOverrides, Origin, PipelineConfig, RequestPipeline};
use crate::policy::Policy;
use crate::quota::IntoQuota;
use crate::response::{Denial, Render, render_with};
use crate::store::{MemoryStore, Store};
use crate::tier::TierResolver;

/// Builder of a [`RateLimitLayer`]. [`build`](Self::build) reports all errors together.
#[derive(Debug)]
#[must_use]
pub struct RateLimitLayerBuilder {
    policy: Result<Policy, ValidationErrors>,
    code: LayerOverrides,
    file: LayerOverrides,
    trusted_proxies: Vec<String>,
    problems: ValidationErrors,
    resolver: Option<TierResolver>,
    store: Option<Arc<dyn Store>>,
    clock: Option<Arc<dyn Clock>>,
    inserts_extensions: bool,
    origin: Option<Arc<dyn Origin>>,
    telemetry: TelemetrySettings,
}

impl RateLimitLayerBuilder {
    pub(super) fn new(policy: Result<Policy, ValidationErrors>) -> Self {
        Self {
            policy,
            code: LayerOverrides::default(),
            file: LayerOverrides::default(),
            trusted_proxies: Vec::new(),
            problems: ValidationErrors::default(),
            resolver: None,
            store: None,
            clock: None,
            inserts_extensions: false,
            origin: None,
            telemetry: TelemetrySettings::default(),
        }
    }

    /// Adds an identity source, after those that were added before: the first that returns an identity
    /// applies. See [`identity`](crate::identity).
    pub fn identify(mut self, source: impl Identify) -> Self {
        self.code.chain = self.code.chain.then(source);
        self
    }

    /// Adds a closure as an identity source.
    ///
    /// ```
    /// # use tollgate::{Identity, RateLimitLayer};
    /// let limits = RateLimitLayer::builder("100/minute")
    ///     .identify_with(|head| head.extension::<Identity>().cloned())
    ///     .build()?;
    /// # let _ = limits;
    /// # Ok::<(), tollgate::ValidationErrors>(())
    /// ```
    pub fn identify_with(
        self,
        closure: impl Fn(&RequestHead<'_>) -> Option<Identity> + Send + Sync + 'static,
    ) -> Self {
        self.identify(Custom::new(closure))
    }

    /// Adds proxies whose `X-Forwarded-For` is used: addresses or networks in CIDR notation. For other
    /// headers and settings, use [`client_ip`](Self::client_ip).
    pub fn trusted_proxies<N: Into<String>>(
        mut self,
        networks: impl IntoIterator<Item = N>,
    ) -> Self {
        self.trusted_proxies
            .extend(networks.into_iter().map(Into::into));
        self
    }

    /// Sets how the client IP is determined. Default: the peer address.
    pub fn client_ip(mut self, client_ip: ClientIp) -> Self {
        self.code.client_ip = Some(client_ip);
        self
    }

    /// Sets how many requests with wrong credentials one client IP may send. Default: `60/minute`.
    ///
    /// Further requests *with a wrong credential* get 429, with the policy
    /// `ip:invalid-credentials:1m`. Requests with a credential that names a subject, or with no wrong
    /// one, are not affected. Expired tokens are not charged. Clients without a known address are not
    /// limited.
    pub fn failed_auth_quota(mut self, quota: impl IntoQuota) -> Self {
        let quota = quota.into_quota();
        let quota = quota.map_err(|wrong| wrong.within("failed_auth_quota"));
        self.code.failed_auth_quota = self.problems.note(quota);
        self
    }

    /// Sets what happens to requests with wrong credentials. Default:
    /// [`OnInvalidCredentials::Anonymous`]; see [the security guide](crate::docs::security).
    pub fn on_invalid_credentials(mut self, outcome: OnInvalidCredentials) -> Self {
        self.code.on_invalid_credentials = Some(outcome);
        self
    }

    /// Looks up the tier of callers whose identity has none. The resolver uses the layer's clock and
    /// has its own cache.
    pub fn tier_resolver(mut self, resolver: TierResolver) -> Self {
        self.resolver = Some(resolver);
        self
    }

    /// Sets the store; in an [`Arc`], it can be shared. Default: a new
    /// [`MemoryStore`](crate::MemoryStore).
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Sets the clock; in an [`Arc`], it can be shared. Default: [`SystemClock`].
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Sets the rate-limit headers of responses: a [`HeaderSet`](crate::headers::HeaderSet) or a
    /// [`HeaderStyle`]. Default: `X-RateLimit-*`.
    pub fn headers(mut self, style: impl Into<HeaderStyle>) -> Self {
        self.code.style = Some(style.into());
        self
    }

    /// Sets the renderer of denials; see [`response`](crate::response). Default: [`Auto`](crate::response::Auto).
    pub fn render(mut self, renderer: impl Render) -> Self {
        self.code.renderer = Some(Arc::new(renderer));
        self
    }

    /// Adds a random time of up to `max` to the `Retry-After` of denials by a quota, so that clients
    /// that were denied together do not come back together. Default: none.
    ///
    /// The body and the message have the same wait. `X-RateLimit-Reset` and `reset_at` do not change.
    pub fn retry_after_jitter(mut self, max: Duration) -> Self {
        self.code.retry_after_jitter = Some(max);
        self
    }

    /// Sets a closure as the renderer of denials.
    ///
    /// ```
    /// # use http::Response;
    /// # use tollgate::RateLimitLayer;
    /// let limits = RateLimitLayer::builder("20/hour")
    ///     .render_with(|_denial| Response::new(r#"{"ok":true}"#))
    ///     .build()?;
    /// # let _ = limits;
    /// # Ok::<(), tollgate::ValidationErrors>(())
    /// ```
    pub fn render_with<B: Into<Bytes>>(
        self,
        closure: impl Fn(&Denial<'_>) -> Response<B> + Send + Sync + 'static,
    ) -> Self {
        self.render(render_with(closure))
    }

    /// Inserts the [`Decision`](crate::Decision) and a [`Charge`](crate::Charge) into the extensions of
    /// admitted requests. The axum extractors, `DenialResponder` among them, read them there. Default: off,
    /// because it costs two allocations per request.
    pub fn insert_extensions(mut self) -> Self {
        self.inserts_extensions = true;
        self
    }

    /// Sets the thresholds of [alerts](RateLimitLayer::on_alert). They win over those of a policy file. See
    /// [`Alerts`] for the defaults.
    pub fn alerts(mut self, alerts: Alerts) -> Self {
        self.code.alerts = self.problems.note(alerts.checked());
        self
    }

    /// Sets the key of the hashes that replace identities in events, such as
    /// `user#9f86d081884c7d65`. With the same key, hashes are the same in all processes and after a
    /// restart. Default: a random key for each process.
    ///
    /// Keep the key secret: with it, identities can be found by trying.
    pub fn hash_identities_with(mut self, key: impl AsRef<[u8]>) -> Self {
        self.telemetry.names = Pseudonyms::Keyed(key.as_ref().into());
        self
    }

    /// Writes identities to events as they are, such as `user=alice` or `ip=203.0.113.9`. The logs are
    /// personal data then.
    pub fn log_plain_identities(mut self) -> Self {
        self.telemetry.names = Pseudonyms::Plain;
        self
    }

    /// Switches statistics off: [`statistics`](RateLimitLayer::statistics) stay empty, no alert fires,
    /// and there are no metrics of decisions. Events are still sent. Saves a few nanoseconds per
    /// request.
    pub fn without_statistics(mut self) -> Self {
        self.telemetry.is_off = true;
        self
    }

    /// Sets the other settings of the policy's file, and how to read it again.
    #[cfg(feature = "config")]
    pub(crate) fn with_file_settings(
        mut self,
        file: LayerOverrides,
        origin: Option<Arc<dyn Origin>>,
    ) -> Self {
        self.file = file;
        self.origin = origin;
        self
    }

    /// Checks everything and builds the layer.
    pub fn build(self) -> Result<RateLimitLayer, ValidationErrors> {
        let (mut problems, mut code) = (self.problems, self.code);
        if !self.trusted_proxies.is_empty() {
            if code.client_ip.is_some() {
                let found = self.trusted_proxies.join(", ");
                let expected = "the proxies in `client_ip`, where that is given";
                problems.push(ValidationError::new("trusted_proxies", found, expected));
            }
            let client_ip = ClientIp::builder().trusted_proxies(self.trusted_proxies);
            code.client_ip = problems.note_all(client_ip.build());
        }
        let policy = match self.policy {
            Ok(policy) => problems.or(policy)?,
            Err(wrong) => {
                let wrong = wrong.iter().cloned();
                wrong.for_each(|problem| problems.push(problem));
                return Err(problems);
            }
        };
        let clock: Arc<dyn Clock> = self.clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        let resolver = self
            .resolver
            .map(|resolver| resolver.on_clock(Arc::clone(&clock)));
        let pipeline = RequestPipeline::new(PipelineConfig {
            policy,
            store: self.store.unwrap_or_else(|| Arc::new(MemoryStore::new())),
            clock,
            code,
            file: self.file,
            resolver,
            inserts_extensions: self.inserts_extensions,
            origin: self.origin,
            telemetry: self.telemetry,
        })?;
        Ok(RateLimitLayer {
            pipeline: Arc::new(pipeline),
        })
    }
}
