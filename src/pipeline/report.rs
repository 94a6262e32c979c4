//! Reports to telemetry.

use std::cell::LazyCell;

use super::context::RequestContext;
use super::{Evaluation, RequestPipeline, Snapshot};
use crate::batch::Group;
use crate::clock::Timestamp;
use crate::decision::Decision;
use crate::error::StoreError;
use crate::head::RequestHead;
use crate::headers::{QuotaName, QuotaUsage};
use crate::identity_types::Identity;
use crate::observe::{
    Allowed, DecisionCounters, Exceeded, Exempted, Statistics, StoreStatistics, Telemetry,
};
use crate::policy::{Caller, Exemption};
use crate::response::{Denial, RequestId};
use crate::store::{StoreAdmin, StoreHealth};
use crate::usage::{Usage, Usages};

impl RequestPipeline {
    /// Admits a request that is exempt.
    pub(super) fn pass_exempt(
        &self,
        snapshot: &Snapshot,
        reason: Exemption,
        identity: Option<&Identity>,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Evaluation {
        let telemetry = &self.telemetry;
        let suppressed = if reason == Exemption::Maintenance {
            telemetry.exempt_by_maintenance(reason.name(), now)
        } else {
            let is_logged = telemetry.exempt(reason.name(), reason.is_audited());
            is_logged.then_some(0)
        };
        if let Some(suppressed) = suppressed {
            self.log_exempt(snapshot, reason, identity, head, suppressed);
        }
        Evaluation::Pass(None)
    }

    /// Logs an exempt request. A caller whose credentials were not read is named by its client IP.
    #[cold]
    fn log_exempt(
        &self,
        snapshot: &Snapshot,
        reason: Exemption,
        identity: Option<&Identity>,
        head: &RequestHead<'_>,
        suppressed: u64,
    ) {
        let address = snapshot.client_ip().locate(head);
        let caller = Caller {
            identity,
            ip: address.map(|address| address.group()),
        };
        let request_id = RequestId::of(head.headers());
        let exempted = Exempted {
            why: reason.name(),
            is_audited: reason.is_audited(),
            head: *head,
            caller: caller.subject(),
            role: snapshot.policy.exempt_role(identity),
            request_id: request_id.as_str(),
        };
        self.telemetry.log_exempt(&exempted, suppressed);
    }

    /// Admits a request that could not be counted.
    pub(super) fn pass_uncounted(&self) -> Evaluation {
        self.telemetry.uncounted();
        Evaluation::Pass(None)
    }

    /// Reports that the store answered. If it had failed before, it has recovered, unless a decorator
    /// answered in its place.
    #[inline]
    pub(super) fn store_answered(&self, now: Timestamp) {
        if self.telemetry.is_store_failing() && self.store.health().is_healthy() {
            self.telemetry.store_recovered(now);
        }
    }

    /// Ends an outage without a request, if the store has reported its beginning and its end. A store
    /// without a health of its own recovers with the next request.
    fn follow_store_health(&self, now: Timestamp) {
        if !self.telemetry.is_store_failing() {
            return;
        }
        if !self.store.health().is_healthy() {
            self.telemetry.store_reports_failure();
        } else if self.telemetry.has_store_reported_failure() {
            self.telemetry.store_recovered(now);
        }
    }

    /// Reports a failed call of the store.
    #[cold]
    pub(super) fn store_failed(&self, error: &StoreError, now: Timestamp) {
        self.telemetry.store_failed(error, now);
        // Once per outage: the health of some stores is expensive to read.
        if !self.telemetry.has_store_reported_failure() && !self.store.health().is_healthy() {
            self.telemetry.store_reports_failure();
        }
    }

    /// Reports an admitted request under its binding quota.
    #[inline]
    pub(super) fn report_allowed(
        &self,
        snapshot: &Snapshot,
        context: &RequestContext,
        decision: &Decision,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) {
        let binding = decision.binding();
        let Some(Ok(metadata)) = binding.map(|index| context.metadata(snapshot, index)) else {
            self.telemetry.uncounted();
            return;
        };
        let allowed = Allowed {
            endpoint: context.endpoint(snapshot),
            policy: &metadata.counters,
            usage: decision.usage(),
            warns: snapshot.policy.warns(decision.usage()),
            now,
        };
        if self.telemetry.allowed(&allowed) {
            self.telemetry
                .record_duration(self.now().duration_since(now), false);
        }
        if self.telemetry.tracks_retries() {
            let caller = context.caller().subject();
            let counts = |counter| context.counts_on(snapshot, counter);
            self.telemetry.retried(&caller, counts, now);
        }
        if Telemetry::logs_allowed(allowed.warns) {
            self.log_allowed(&allowed, &metadata.name, context, head);
        }
    }

    #[cold]
    fn log_allowed(
        &self,
        allowed: &Allowed<'_>,
        name: &QuotaName,
        context: &RequestContext,
        head: &RequestHead<'_>,
    ) {
        let request_id = LazyCell::new(|| RequestId::of(head.headers()));
        let exceeded = || Exceeded {
            head: *head,
            endpoint: path_of(allowed.endpoint, head),
            policy: name.as_str(),
            limit: allowed.usage.limit(),
            used: allowed.usage.used(),
            // Charged already.
            cost: 0,
            window: Some(name.window()),
            retry_after: None,
            request_id: request_id.as_str(),
        };
        self.telemetry
            .log_allowed(allowed, &context.caller().subject(), exceeded);
    }

    /// Reports the dry runs that would have denied an admitted request.
    #[inline]
    pub(super) fn report_dry_runs(
        &self,
        snapshot: &Snapshot,
        context: &RequestContext,
        usages: &Usages,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) {
        let checks = context.checks();
        let mut from = usages.live().len();
        while let Some(Group::DryRun(_)) = checks.get(from).map(|check| check.group) {
            let group = checks[from].group;
            let len = checks[from..].partition_point(|check| check.group == group);
            let range = from..from + len;
            if !usages.usages()[range.clone()].iter().all(Usage::is_allowed) {
                let decision = context.decision_of(snapshot, usages, range);
                self.report_dry_run(snapshot, context, from, decision, head, now);
            }
            from += len;
        }
    }

    /// Reports the denial of a dry run whose checks begin at index `first`.
    #[cold]
    fn report_dry_run(
        &self,
        snapshot: &Snapshot,
        context: &RequestContext,
        first: usize,
        decision: Decision,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) {
        let binding = decision.binding().and_then(|index| {
            let index = first + index;
            let metadata = context.metadata(snapshot, index).ok()?;
            let cost = context.checks()[index].cost;
            Some((context.quota_name(snapshot, index).ok()?, metadata, cost))
        });
        let Some((name, metadata, cost)) = binding else {
            return;
        };
        let decision = decision.on_wall(self.wall_offset(context.counted_in));
        let usage = QuotaUsage::new(name, *decision.usage());
        let denial = Denial::limited(*head, usage, decision.at());
        let caller = context.caller();
        let (subject, counters) = (caller.subject(), &metadata.counters);
        self.telemetry
            .would_deny(counters, &subject, caller.ip, now, || {
                exceeded(&denial, context.endpoint(snapshot), cost)
            });
    }

    /// Updates statistics, alerts and gauges to the present.
    pub(crate) fn refresh(&self) {
        self.tick(self.now());
    }

    /// Updates statistics, alerts and gauges. Called about once a second.
    #[cold]
    pub(crate) fn tick(&self, now: Timestamp) {
        self.follow_store_health(now);
        self.telemetry.tick(now);
        #[cfg(feature = "metrics")]
        self.telemetry.publish(&self.collect_statistics(now));
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let now = self.now();
        self.tick(now);
        self.collect_statistics(now)
    }

    /// Returns the statistics as of the last tick, in wall-clock time.
    fn collect_statistics(&self, now: Timestamp) -> Statistics {
        let memory = self.store.admin().and_then(StoreAdmin::memory_stats);
        let mut store = StoreStatistics {
            healthy: true,
            since: None,
            why: None,
            keys: memory.map(|memory| memory.counters()),
            evictions: memory.map(|memory| memory.evicted()),
            overflowed: memory.map(|memory| memory.overflowed()),
        };
        let mut degraded_since = None;
        if let StoreHealth::Degraded { since, why, .. } = self.store.health() {
            (store.healthy, store.why, degraded_since) =
                (false, Some(why.to_string()), Some(since));
        }
        let statistics = self.telemetry.statistics(now, store, self.policy_version());
        let mut statistics = statistics.offset_by(self.clock.wall_offset());
        // The health of a store is in wall-clock time already.
        statistics.store.since = degraded_since.or(statistics.store.since);
        statistics
    }
}

/// Returns the fields of events about a denial. `cost` is what the request would have added.
pub(super) fn exceeded<'a>(
    denial: &'a Denial<'_>,
    endpoint: &'a DecisionCounters,
    cost: u64,
) -> Exceeded<'a> {
    let head = denial.head();
    Exceeded {
        head,
        endpoint: path_of(endpoint, &head),
        policy: denial.policy().unwrap_or_default(),
        limit: denial.limit().unwrap_or_default(),
        used: denial.used().unwrap_or_default(),
        cost,
        window: denial.window(),
        retry_after: denial.retry_after_secs(),
        request_id: denial.request_id().as_str(),
    }
}

/// Returns the name of an endpoint in events: the path of its route, so that events can be grouped and
/// ids do not show; or the path of the request if no route matches.
fn path_of<'a>(endpoint: &'a DecisionCounters, head: &RequestHead<'a>) -> &'a str {
    let name = &**endpoint.name();
    let route = name.split_once(' ').map_or(name, |(_, path)| path);
    if route.starts_with('/') {
        route
    } else {
        head.path()
    }
}
