//! The tier of a caller.

use std::sync::Arc;

use super::{RequestPipeline, Snapshot};
use crate::clock::Timestamp;
use crate::identity_types::Identity;
use crate::observe::Telemetry;
use crate::policy::{TierOf, TierTable};
use crate::tier::TierFuture;

/// The index of a tier, or a future of its name.
pub(super) enum TierLookup {
    Known(usize),
    Pending(TierName),
}

/// A future of the name of a tier.
pub(super) type TierName = futures_util::future::BoxFuture<'static, Option<Arc<str>>>;

impl RequestPipeline {
    /// Looks the tier up: in the table of the policy, else in the identity, else with the resolver.
    #[inline]
    pub(super) fn look_up_tier(
        &self,
        snapshot: &Snapshot,
        identity: Option<&Arc<Identity>>,
        now: Timestamp,
    ) -> TierLookup {
        match snapshot.policy.tiers().of(identity.map(Arc::as_ref)) {
            TierOf::Assigned(tier) | TierOf::FromIdentity(tier) => return TierLookup::Known(tier),
            TierOf::Unknown(name) => {
                self.telemetry.unknown_tier(name);
                return TierLookup::Known(TierTable::DEFAULT);
            }
            TierOf::Anonymous => return TierLookup::Known(TierTable::DEFAULT),
            TierOf::NotNamed => {}
        }
        let (Some(resolver), Some(identity)) = (&self.resolver, identity) else {
            return TierLookup::Known(TierTable::DEFAULT);
        };
        match resolver.tier(identity, now) {
            TierFuture::Ready(name) => {
                TierLookup::Known(snapshot.tier(name.as_deref(), &self.telemetry))
            }
            TierFuture::Pending(name) => TierLookup::Pending(name),
        }
    }
}

impl Snapshot {
    /// Returns the index of a tier; the default tier for names that the policy does not have.
    pub(super) fn tier(&self, name: Option<&str>, telemetry: &Telemetry) -> usize {
        let Some(name) = name else {
            return TierTable::DEFAULT;
        };
        self.policy.tiers().index(name).unwrap_or_else(|| {
            telemetry.unknown_tier(name);
            TierTable::DEFAULT
        })
    }
}
