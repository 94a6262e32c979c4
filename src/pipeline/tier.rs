//! Which tier a caller has.

use std::sync::Arc;

use super::{RequestPipeline, Snapshot};
use crate::clock::Timestamp;
use crate::observe::Watch;
use crate::policy::{TierOf, TierTable};
use crate::tier::TierAnswer;
use crate::who::Identity;

/// The number of a tier, or the wait for its name.
pub(super) enum TierLookup {
    Known(usize),
    Pending(Name),
}

/// The name of a tier, when it comes.
pub(super) type Name = futures_util::future::BoxFuture<'static, Option<Arc<str>>>;

impl RequestPipeline {
    /// What the table says, else the identity, else whoever is asked.
    #[inline]
    pub(super) fn tier_of(
        &self,
        rules: &Snapshot,
        identity: Option<&Arc<Identity>>,
        now: Timestamp,
    ) -> TierLookup {
        match rules.policy.tiers().of(identity.map(Arc::as_ref)) {
            TierOf::Assigned(tier) | TierOf::Said(tier) => return TierLookup::Known(tier),
            TierOf::Unknown(name) => {
                self.watch.unknown_tier(name);
                return TierLookup::Known(TierTable::DEFAULT);
            }
            TierOf::Anonymous => return TierLookup::Known(TierTable::DEFAULT),
            TierOf::Unsaid => {}
        }
        let (Some(resolver), Some(identity)) = (&self.resolver, identity) else {
            return TierLookup::Known(TierTable::DEFAULT);
        };
        match resolver.tier(identity, now) {
            TierAnswer::Ready(name) => {
                TierLookup::Known(number(rules, name.as_deref(), &self.watch))
            }
            TierAnswer::Pending(name) => TierLookup::Pending(name),
        }
    }
}

/// The number of a tier; a name that the policy does not know is the default.
pub(super) fn number(rules: &Snapshot, name: Option<&str>, watch: &Watch) -> usize {
    let Some(name) = name else {
        return TierTable::DEFAULT;
    };
    rules.policy.tiers().index(name).unwrap_or_else(|| {
        watch.unknown_tier(name);
        TierTable::DEFAULT
    })
}
