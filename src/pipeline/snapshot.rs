//! Compiled policy and settings of one version.

use std::sync::Arc;
use std::time::Duration;

use super::failed_auth::FailedAuthLimiter;
use super::quota_names::QuotaNames;
use crate::error::ValidationErrors;
use crate::headers::HeaderStyle;
use crate::identity::{Chain, ClientIp, OnInvalidCredentials};
use crate::observe::{Alerts, DecisionCounters, Telemetry};
use crate::policy::Policy;
use crate::quota::Quota;
use crate::response::{Auto, Render, Template};

/// A compiled policy with its settings. Swapped as a whole on reload.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(super) policy: Policy,
    pub(super) names: QuotaNames,
    /// Statistics of each endpoint of the policy; the last are those of requests that match none.
    pub(super) endpoints: Box<[Arc<DecisionCounters>]>,
    /// Statistics of requests that `failed_auth` denies.
    pub(super) failed_auth_counters: Arc<DecisionCounters>,
    /// Message templates of the policy's rules.
    pub(super) messages: Box<[Option<Template>]>,
    pub(super) failed_auth: FailedAuthLimiter,
    settings: EffectiveSettings,
    /// Settings from the file of the policy, if it was read from one.
    pub(super) file: LayerOverrides,
}

/// Settings of a layer that are no part of the policy, from code or from a file. Those from code win;
/// identity sources of both apply.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayerOverrides {
    pub(crate) client_ip: Option<ClientIp>,
    pub(crate) chain: Chain,
    pub(crate) failed_auth_quota: Option<Quota>,
    pub(crate) on_invalid_credentials: Option<OnInvalidCredentials>,
    pub(crate) style: Option<HeaderStyle>,
    pub(crate) renderer: Option<Arc<dyn Render>>,
    pub(crate) retry_after_jitter: Option<Duration>,
    pub(crate) alerts: Option<Alerts>,
}

/// The settings that apply.
#[derive(Debug)]
struct EffectiveSettings {
    client_ip: ClientIp,
    chain: Chain,
    on_invalid_credentials: OnInvalidCredentials,
    style: HeaderStyle,
    renderer: Arc<dyn Render>,
    retry_after_jitter: Duration,
    alerts: Alerts,
}

impl EffectiveSettings {
    fn new(code: &LayerOverrides, file: &LayerOverrides) -> Self {
        let client_ip = code.client_ip.as_ref().or(file.client_ip.as_ref());
        let renderer = code.renderer.as_ref().or(file.renderer.as_ref());
        let jitter = code.retry_after_jitter.or(file.retry_after_jitter);
        Self {
            client_ip: client_ip.cloned().unwrap_or_default(),
            chain: file.chain.clone().followed_by(&code.chain),
            on_invalid_credentials: code
                .on_invalid_credentials
                .or(file.on_invalid_credentials)
                .unwrap_or_default(),
            style: code.style.or(file.style).unwrap_or_default(),
            renderer: renderer.map_or_else(|| Arc::new(<Auto>::default()) as _, Arc::clone),
            retry_after_jitter: jitter.unwrap_or_default(),
            alerts: code.alerts.or(file.alerts).unwrap_or_default(),
        }
    }
}

impl Snapshot {
    /// `failed_auth` is the limiter of the previous snapshot, whose counters are kept.
    pub(super) fn new(
        policy: Policy,
        code: &LayerOverrides,
        file: LayerOverrides,
        failed_auth: Option<&FailedAuthLimiter>,
        telemetry: &Arc<Telemetry>,
    ) -> Result<Self, ValidationErrors> {
        let quota = code.failed_auth_quota.or(file.failed_auth_quota);
        let quota = quota.map_or_else(|| Quota::per_minute(60), Ok)?;
        let failed_auth = match failed_auth {
            Some(before) => before.with_quota(quota)?,
            None => FailedAuthLimiter::new(quota)?,
        };
        let mut problems = ValidationErrors::default();
        let messages = policy
            .rules()
            .iter()
            .map(|rule| {
                let template = rule.message.as_deref().map(Template::parse)?;
                problems.note(template.map_err(|wrong| {
                    let path = format!("{}.message", rule.path);
                    wrong.within(&rule.name).at(path)
                }))
            })
            .collect();
        let endpoints: Box<[Arc<DecisionCounters>]> = policy
            .endpoint_names()
            .map(|name| telemetry.endpoint(name))
            .collect();
        let settings = EffectiveSettings::new(code, &file);
        let snapshot = problems.or(Self {
            names: QuotaNames::new(&policy, telemetry),
            endpoints,
            failed_auth_counters: telemetry.policy(failed_auth.name().as_str()),
            policy,
            messages,
            failed_auth,
            settings,
            file,
        })?;
        #[cfg(feature = "metrics")]
        snapshot.register_series(telemetry);
        Ok(snapshot)
    }

    #[inline]
    pub(super) const fn client_ip(&self) -> &ClientIp {
        &self.settings.client_ip
    }

    #[inline]
    pub(super) const fn chain(&self) -> &Chain {
        &self.settings.chain
    }

    #[inline]
    pub(super) const fn on_invalid_credentials(&self) -> OnInvalidCredentials {
        self.settings.on_invalid_credentials
    }

    #[inline]
    pub(crate) const fn style(&self) -> HeaderStyle {
        self.settings.style
    }

    pub(crate) fn renderer(&self) -> &dyn Render {
        &*self.settings.renderer
    }

    /// Returns the longest time that is added to `Retry-After` at random.
    pub(crate) const fn retry_after_jitter(&self) -> Duration {
        self.settings.retry_after_jitter
    }

    /// Returns the thresholds of alerts.
    pub(super) const fn alerts(&self) -> Alerts {
        self.settings.alerts
    }
}
