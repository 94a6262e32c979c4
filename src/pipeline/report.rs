//! Reports to telemetry.

use super::context::RequestContext;
use super::{Evaluation, RequestPipeline, Snapshot};
use crate::batch::Group;
use crate::clock::Timestamp;
use crate::decision::Decision;
use crate::head::RequestHead;
use crate::headers::{QuotaName, QuotaUsage};
use crate::observe::{Allowed, DecisionCounters, Exceeded, Statistics, StoreStatistics, Telemetry};
use crate::policy::Exemption;
use crate::response::Denial;
use crate::store::{StoreAdmin, StoreHealth};
use crate::usage::{Usage, Usages};

impl RequestPipeline {
    /// Admits a request that is exempt.
    pub(super) fn pass_exempt(
        &self,
        reason: Exemption,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Evaluation {
        if reason == Exemption::Maintenance {
            self.telemetry
                .exempt_by_maintenance(reason.name(), head, now);
        } else {
            self.telemetry
                .exempt(reason.name(), reason.is_audited(), head);
        }
        Evaluation::Pass(None)
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
            let caller = context.caller().known_by();
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
        let exceeded = Exceeded {
            head: *head,
            endpoint: path_of(allowed.endpoint, head),
            policy: name.as_str(),
            limit: allowed.usage.limit(),
            used: allowed.usage.used(),
            window: name.window().duration().as_secs(),
            retry_after: None,
            request_id: "",
        };
        self.telemetry
            .log_allowed(allowed, &context.caller().known_by(), &exceeded);
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
            Some((context.quota_name(snapshot, index).ok()?, metadata))
        });
        let Some((name, metadata)) = binding else {
            return;
        };
        let decision = decision.on_wall(self.wall_offset(context.counted_in));
        let usage = QuotaUsage::new(name, *decision.usage());
        let denial = Denial::limited(*head, usage, decision.at());
        let caller = context.caller().known_by();
        self.telemetry
            .would_deny(&metadata.counters, &caller, now, || {
                exceeded(&denial, context.endpoint(snapshot))
            });
    }

    /// Updates statistics, alerts and gauges. Called about once a second.
    #[cold]
    pub(crate) fn tick(&self, now: Timestamp) {
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

/// Returns the fields of events about a denial.
pub(super) fn exceeded<'a>(denial: &'a Denial<'_>, endpoint: &'a DecisionCounters) -> Exceeded<'a> {
    let head = denial.head();
    Exceeded {
        head,
        endpoint: path_of(endpoint, &head),
        policy: denial.policy().unwrap_or_default(),
        limit: denial.limit().unwrap_or_default(),
        used: denial.used().unwrap_or_default(),
        window: denial
            .window()
            .map_or(0, |window| window.duration().as_secs()),
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
