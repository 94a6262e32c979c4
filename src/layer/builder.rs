//! Settings of a [`RateLimitLayer`], checked together.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;

use super::RateLimitLayer;
use crate::clock::{Clock, SystemClock};
use crate::error::{ValidationError, ValidationErrors};
use crate::head::RequestHead;
use crate::headers::HeaderStyle;
use crate::identity::{ClientIp, Custom, Identify};
use crate::identity_types::Identity;
use crate::observe::{Alerts, Pseudonyms, Watching};
use crate::pipeline::{LayerOverrides, OnInvalid, Origin, PipelineConfig, RequestPipeline};
use crate::policy::Policy;
use crate::quota::IntoQuota;
use crate::response::{Auto, Denial, Render, render_with};
use crate::store::{MemoryStore, Store};
use crate::tier::TierResolver;

/// Settings of a [`RateLimitLayer`].
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
    renderer: Arc<dyn Render>,
    extends_requests: bool,
    origin: Option<Arc<dyn Origin>>,
    watching: Watching,
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
            renderer: Arc::new(<Auto>::default()),
            extends_requests: false,
            origin: None,
            watching: Watching::default(),
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

    /// Believes `X-Forwarded-For` if it comes from one of these: addresses or networks. For
    /// other headers and settings, use [`client_ip`](Self::client_ip).
    pub fn trusted_proxies<N: Into<String>>(
        mut self,
        networks: impl IntoIterator<Item = N>,
    ) -> Self {
        self.trusted_proxies
            .extend(networks.into_iter().map(Into::into));
        self
    }

    /// How the client's address is found.
    pub fn client_ip(mut self, client_ip: ClientIp) -> Self {
        self.code.client_ip = Some(client_ip);
        self
    }

    /// How many requests with wrong credentials one client IP may send. Default: `60/minute`.
    ///
    /// Further requests *with a wrong credential* get 429, with the policy
    /// `ip:invalid-credentials:1m`. Requests with a credential that names a subject, or
    /// with no wrong one, are not affected. Expired tokens are not charged. Clients without a known address are not limited.
    pub fn failed_auth_quota(mut self, quota: impl IntoQuota) -> Self {
        let quota = quota.into_quota();
        let quota = quota.map_err(|wrong| wrong.within("failed_auth_quota"));
        self.code.failed_auth_quota = self.problems.note(quota);
        self
    }

    /// Answers 401 to credentials that are not accepted, and 503 to tokens while there are no keys
    /// to verify them with. Default: such a caller is unauthenticated;
    /// [the security guide](crate::docs::security) says when that is safe.
    pub fn reject_invalid_credentials(mut self) -> Self {
        self.code.on_invalid = Some(OnInvalid::Reject);
        self
    }

    /// Looks up the tier of callers whose identity has none. The resolver uses the layer's clock and
    /// has its own cache.
    pub fn tier_resolver(mut self, resolver: TierResolver) -> Self {
        self.resolver = Some(resolver);
        self
    }

    /// Where to count; a [`MemoryStore`](crate::MemoryStore) of its own, if not given. In an [`Arc`], it can be
    /// shared.
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// The clock; the machine's, if not given. In an [`Arc`], it can be shared.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Which headers responses carry: a [`HeaderSet`](crate::headers::HeaderSet), or a whole
    /// [`HeaderStyle`].
    pub fn headers(mut self, style: impl Into<HeaderStyle>) -> Self {
        self.code.style = Some(style.into());
        self
    }

    /// Sets the renderer of denials; see [`response`](crate::response).
    pub fn render(mut self, renderer: impl Render) -> Self {
        self.renderer = Arc::new(renderer);
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

    /// Handlers can take the [`Decision`](crate::Decision) and a [`Charge`](crate::Charge), as
    /// extractors of axum or from the extensions of the request. Not the default, because it
    /// costs every request two allocations.
    pub fn handlers_see_decision(mut self) -> Self {
        self.extends_requests = true;
        self
    }

    /// When [alerts](RateLimitLayer::on_alert) fire; see [`Alerts`] for the defaults.
    pub fn alerts(mut self, alerts: Alerts) -> Self {
        self.watching.alerts = self.problems.note(alerts.checked()).unwrap_or_default();
        self
    }

    /// In events, callers are called by a hash under this key, such as `user#9f86d081884c7d65`:
    /// the same in all processes that have the same key, and after a restart. If this is not
    /// said, the key is random, and names hold as long as the process runs.
    ///
    /// Keep the key secret: with it, a hash can be matched with a name by trying.
    pub fn hash_identities_with(mut self, key: impl AsRef<[u8]>) -> Self {
        self.watching.names = Pseudonyms::Keyed(key.as_ref().into());
        self
    }

    /// In events, callers are called by their names, such as `user=alice` or `ip=203.0.113.9`.
    /// Logs are then about people; mind who reads them, and how long they are kept.
    pub fn log_plain_identities(mut self) -> Self {
        self.watching.names = Pseudonyms::Plain;
        self
    }

    /// Switches statistics off: [`statistics`](RateLimitLayer::statistics) stay empty, no alert fires,
    /// and there are no metrics of decisions. Events are still sent. Saves a few nanoseconds per
    /// request.
    pub fn without_statistics(mut self) -> Self {
        self.watching.is_off = true;
        self
    }

    /// Sets the other settings of the policy's file, and how to read it again.
    #[cfg(feature = "config")]
    pub(crate) fn said_by_file(
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
            renderer: self.renderer,
            extends_requests: self.extends_requests,
            origin: self.origin,
            watching: self.watching,
        })?;
        Ok(RateLimitLayer {
            pipeline: Arc::new(pipeline),
        })
    }
}
