//! What requests are decided by, all of it in one snapshot.

use std::sync::Arc;

use super::OnInvalid;
use super::failed_auth::FailedAuthLimiter;
use super::quota_names::QuotaNames;
use crate::error::Problems;
use crate::headers::HeaderStyle;
use crate::identity::{Chain, ClientIp};
use crate::observe::{Tally, Watch};
use crate::policy::Policy;
use crate::quota::Quota;
use crate::response::Template;

/// A policy with all that follows from it, and what a file says besides. Swapped as a whole.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(super) policy: Policy,
    pub(super) labels: QuotaNames,
    /// One for each endpoint of the policy, and at last one for what matches none.
    pub(super) endpoints: Box<[Arc<Tally>]>,
    /// What is counted of requests that `failed_auth` denies.
    pub(super) failed_auth_tally: Arc<Tally>,
    /// One for each of the policy's terms.
    pub(super) messages: Box<[Option<Template>]>,
    pub(super) failed_auth: FailedAuthLimiter,
    around: EffectiveSettings,
    /// What the file says that the policy came from, if it came from one.
    pub(super) file: LayerOverrides,
}

/// What code or a file says about how callers are found and told, which a policy does not say.
/// What code says comes first; but for who callers are, both are asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayerOverrides {
    pub(crate) client_ip: Option<ClientIp>,
    pub(crate) chain: Chain,
    pub(crate) failed_auth_quota: Option<Quota>,
    pub(crate) on_invalid: Option<OnInvalid>,
    pub(crate) style: Option<HeaderStyle>,
}

/// What follows from both.
#[derive(Debug)]
struct EffectiveSettings {
    client_ip: ClientIp,
    chain: Chain,
    on_invalid: OnInvalid,
    style: HeaderStyle,
}

impl EffectiveSettings {
    fn new(code: &LayerOverrides, file: &LayerOverrides) -> Self {
        let client_ip = code.client_ip.as_ref().or(file.client_ip.as_ref());
        Self {
            client_ip: client_ip.cloned().unwrap_or_default(),
            chain: file.chain.clone().followed_by(&code.chain),
            on_invalid: code.on_invalid.or(file.on_invalid).unwrap_or_default(),
            style: code.style.or(file.style).unwrap_or_default(),
        }
    }
}

impl Snapshot {
    /// `failed_auth` is the limiter of the snapshot before, whose counters are kept.
    pub(super) fn new(
        policy: Policy,
        code: &LayerOverrides,
        file: LayerOverrides,
        failed_auth: Option<&FailedAuthLimiter>,
        watch: &Arc<Watch>,
    ) -> Result<Self, Problems> {
        let quota = code.failed_auth_quota.or(file.failed_auth_quota);
        let quota = quota.map_or_else(|| Quota::per_minute(60), Ok)?;
        let failed_auth = match failed_auth {
            Some(before) => before.with_quota(quota)?,
            None => FailedAuthLimiter::new(quota)?,
        };
        let mut problems = Problems::default();
        let messages = policy
            .all_terms()
            .iter()
            .map(|terms| {
                let template = terms.message.as_deref().map(Template::parse)?;
                problems.note(template.map_err(|wrong| {
                    let path = format!("{}.message", terms.path);
                    wrong.within(&terms.rule).at(path)
                }))
            })
            .collect();
        let endpoints: Box<[Arc<Tally>]> = policy
            .endpoint_names()
            .map(|name| watch.endpoints().of(name))
            .collect();
        let around = EffectiveSettings::new(code, &file);
        problems.or(Self {
            labels: QuotaNames::new(&policy, watch),
            endpoints,
            failed_auth_tally: watch.policies().of(failed_auth.label().as_str()),
            policy,
            messages,
            failed_auth,
            around,
            file,
        })
    }

    #[inline]
    pub(super) const fn client_ip(&self) -> &ClientIp {
        &self.around.client_ip
    }

    #[inline]
    pub(super) const fn chain(&self) -> &Chain {
        &self.around.chain
    }

    #[inline]
    pub(super) const fn on_invalid(&self) -> OnInvalid {
        self.around.on_invalid
    }

    #[inline]
    pub(super) const fn style(&self) -> HeaderStyle {
        self.around.style
    }
}
