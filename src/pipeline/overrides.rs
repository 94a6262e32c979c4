//! Overrides: limits that are set at run time.

use std::borrow::Cow;
#[cfg(feature = "admin")]
use std::sync::Arc;

use super::context::RequestContext;
use super::{RequestPipeline, Snapshot};
#[cfg(feature = "admin")]
use crate::clock;
use crate::clock::Timestamp;
use crate::error::{Error, ValidationError};
use crate::headers::QuotaName;
#[cfg(feature = "admin")]
use crate::key::OwnedSubject;
use crate::key::{Counter, Subject, plain_label};
use crate::observe;
use crate::policy::{Caller, KeyBy, PlannedCheck, Policy};
use crate::quota::Quota;
use crate::store::{AppliedOverride, Override, Overrides, StoreFuture, no_overrides};
use crate::usage::Usages;

impl RequestPipeline {
    /// Sets a limit for a subject under a rule of the policy.
    pub(crate) fn set_override(&self, new: Override) -> StoreFuture<(), Error> {
        let snapshot = self.snapshot.load();
        if let Err(wrong) = is_for_callers(&new).and_then(|()| fits(&snapshot.policy, &new)) {
            return StoreFuture::ready(Err(wrong.into()));
        }
        let new = new.in_network(|address| snapshot.client_ip().group(address));
        // Otherwise expired overrides would accumulate if they are never listed.
        if let Some(known) = self.override_table() {
            known.sweep(self.wall_now());
        }
        let (rule, quota, until) = (new.rule().to_owned(), *new.quota(), new.expires_at());
        #[cfg(feature = "admin")]
        let end_denial = self.denial_end(&new.subject(), Some(new.rule()));
        let Some(store) = self.store.overrides() else {
            return StoreFuture::ready(Err(no_overrides().into()));
        };
        store.set(new).map(move |set| {
            set?;
            #[cfg(feature = "admin")]
            end_denial();
            observe::overridden(&rule, Some(&quota), until);
            Ok(())
        })
    }

    /// Removes the limits of a subject under a rule.
    pub(crate) fn remove_override(
        &self,
        subject: Subject<'_>,
        rule: &str,
    ) -> StoreFuture<bool, Error> {
        let snapshot = self.snapshot.load();
        let of =
            Override::of(subject, rule).in_network(|address| snapshot.client_ip().group(address));
        if of.is_maintenance() {
            return StoreFuture::ready(Ok(false));
        }
        let Some(store) = self.store.overrides() else {
            return StoreFuture::ready(Ok(false));
        };
        #[cfg(feature = "admin")]
        let end_denial = self.denial_end(&of.subject(), Some(rule));
        let answer = store.remove(&of.subject(), rule);
        let rule = rule.to_owned();
        answer.map(move |removed| {
            let removed = removed?;
            if removed {
                #[cfg(feature = "admin")]
                end_denial();
                observe::overridden(&rule, None, None);
            }
            Ok(removed)
        })
    }

    /// Returns a function that ends the known denial of a caller by a rule. Without a rule: by any. Called
    /// after the store has changed the counters or limits: until then, requests are still denied.
    #[cfg(feature = "admin")]
    pub(super) fn denial_end(
        &self,
        caller: &Subject<'_>,
        rule: Option<&str>,
    ) -> impl FnOnce() + Send + 'static {
        let (telemetry, clock) = (Arc::clone(&self.telemetry), Arc::clone(&self.clock));
        let caller = OwnedSubject::from(caller);
        let snapshot = self.snapshot.load();
        let counters = snapshot.policy.quotas().iter().map(|quota| &quota.counter);
        let counters = counters.filter(|counter| rule.is_none_or(|rule| counter.rule() == rule));
        let counters: Vec<u64> = counters.map(Counter::id).collect();
        move || telemetry.end_denial(&caller.as_subject(), &counters, clock::now(&*clock))
    }

    /// Returns the overrides that apply.
    pub(crate) fn overrides(&self) -> Vec<Override> {
        let overrides = self.override_table();
        let mut known = overrides.map_or_else(Vec::new, |known| known.list(self.wall_now()));
        known.retain(|known| !known.is_maintenance());
        known
    }
}

/// A quota that applies to one caller in place of the policy's, with its name.
#[derive(Clone, Debug)]
pub(super) struct QuotaOverride {
    pub(super) quota: Quota,
    pub(super) name: QuotaName,
    /// When the block ends, on the wall clock. `None` if the quota is not `blocked` or has no end.
    pub(super) blocked_until: Option<Timestamp>,
}

impl RequestPipeline {
    /// Looks up the quotas that were set for the caller at run time and apply at `now`.
    pub(super) fn apply_overrides(
        &self,
        overrides: &Overrides,
        snapshot: &Snapshot,
        context: &mut RequestContext,
        now: Timestamp,
    ) {
        let (policy, caller, wall) = (&snapshot.policy, context.caller(), self.wall_at(now));
        let may_have = |subject: Subject<'_>| overrides.may_have(&subject);
        let is_caller_found = caller.subjects().any(may_have);
        let mut found = None;
        for (index, check) in context.checks().iter().enumerate() {
            let key_by = policy.key_by(check);
            if !is_caller_found && !key_by.subject(&caller).is_some_and(may_have) {
                continue;
            }
            let counter = &policy.quota(check).counter;
            let applied = override_for(overrides, &caller, key_by, counter, wall);
            if let Some(applied) = applied {
                let all = found.get_or_insert_with(|| vec![None; context.checks().len()]);
                all[index] = context.quota_override_of(snapshot, check, applied);
            }
        }
        context.overrides = found.map(Vec::into_boxed_slice);
    }
}

impl RequestContext {
    /// Returns the quota that an override sets for a check, with its header name.
    pub(super) fn quota_override_of(
        &self,
        snapshot: &Snapshot,
        check: &PlannedCheck,
        applied: AppliedOverride,
    ) -> Option<QuotaOverride> {
        let AppliedOverride {
            quota,
            blocked_until,
        } = applied;
        let policy = &snapshot.policy;
        let caller = self.caller();
        let label = plain_label(policy.key_by(check).label(&caller));
        let name = QuotaName::new(label, &policy.quota(check).counter, &quota).ok()?;
        Some(QuotaOverride {
            quota,
            name,
            blocked_until,
        })
    }

    /// Returns usages in which the checks of blocks that end are denied until then. `wall_offset`
    /// converts the store's instants to wall-clock time.
    #[inline]
    pub(super) fn with_block_ends<'a>(
        &self,
        usages: &'a Usages,
        wall_offset: i64,
    ) -> Cow<'a, Usages> {
        match &self.overrides {
            Some(overrides) => with_block_ends(overrides, usages, wall_offset),
            None => Cow::Borrowed(usages),
        }
    }
}

impl RequestPipeline {
    /// Returns the quota of a check that is not in the batch of a request, at `now`.
    pub(super) fn quota_of(
        &self,
        snapshot: &Snapshot,
        context: &RequestContext,
        check: &PlannedCheck,
        now: Timestamp,
    ) -> Quota {
        let policy = &snapshot.policy;
        let compiled = policy.quota(check);
        let set = self.override_table().and_then(|overrides| {
            let wall = self.wall_at(now);
            let (caller, key_by) = (context.caller(), policy.key_by(check));
            override_for(overrides, &caller, key_by, &compiled.counter, wall)
        });
        set.map_or(*compiled.quota(context.tier), |set| set.quota)
    }
}

#[cold]
fn with_block_ends<'a>(
    overrides: &[Option<QuotaOverride>],
    usages: &'a Usages,
    wall_offset: i64,
) -> Cow<'a, Usages> {
    let until = |index: usize| overrides.get(index)?.as_ref()?.blocked_until;
    usages.with_block_ends(until, wall_offset)
}

/// Returns what was set at run time for one of a caller's counters and applies at
/// wall-clock time `wall`. Overrides are looked up for the subject of the counter first, then for the
/// identity of the caller, then for its other dimensions.
pub(super) fn override_for(
    overrides: &Overrides,
    caller: &Caller<'_>,
    key_by: &KeyBy,
    counter: &Counter,
    wall: Timestamp,
) -> Option<AppliedOverride> {
    let mut subjects = key_by.subject(caller).into_iter().chain(caller.subjects());
    subjects.find_map(|of| overrides.find(&of, counter.rule(), counter.quota(), wall))
}

/// Error for an unknown rule, with the names of the policy's rules.
pub(super) fn no_such_rule(policy: &Policy, name: &str) -> ValidationError {
    let quotas = policy.quotas().iter();
    let mut names: Vec<&str> = quotas.map(|quota| quota.counter.rule()).collect();
    names.sort_unstable();
    names.dedup();
    let expected = format!("a rule of the policy: {}", names.join(", "));
    ValidationError::new("rule name", name.escape_debug(), expected)
}

/// Rejects the subject of maintenance, which is stored among the overrides: it must not be set without
/// its audit event.
fn is_for_callers(new: &Override) -> Result<(), ValidationError> {
    if new.is_maintenance() {
        let expected = "a subject of callers; use maintenance to switch limits off";
        return Err(ValidationError::new("subject", "@tollgate", expected));
    }
    Ok(())
}

/// Checks that the policy has a rule of that name, with a quota of that window.
fn fits(policy: &Policy, new: &Override) -> Result<(), ValidationError> {
    let of_rule = policy.quotas().iter().map(|quota| &quota.counter);
    let of_rule: Vec<_> = of_rule
        .filter(|counter| counter.rule() == new.rule())
        .collect();
    if of_rule.is_empty() {
        return Err(no_such_rule(policy, new.rule()));
    }
    if of_rule
        .iter()
        .any(|counter| new.applied_to(counter.quota()).is_some())
    {
        return Ok(());
    }
    let mut windows: Vec<String> = of_rule
        .iter()
        .map(|counter| format!("`{}`", counter.quota()))
        .collect();
    windows.sort_unstable();
    windows.dedup();
    let expected = format!(
        "an amount that can be counted in the window of {}, or `unlimited` or `blocked`",
        windows.join(" or ")
    );
    Err(ValidationError::new("override", new.quota(), expected))
}
