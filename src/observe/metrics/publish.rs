//! Sets gauges from [`Statistics`].

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::LayerMetrics;
use crate::observe::Telemetry;
use crate::observe::alert::AlertKind;
use crate::observe::statistics::Statistics;

impl Telemetry {
    /// Returns the metrics of this layer. They are registered by the first call.
    pub(in crate::observe) fn metrics(&self) -> &LayerMetrics {
        self.metrics
            .get_or_init(LayerMetrics::describe_and_register)
    }

    /// Sets all gauges. Called about once a second. No lock is held while the recorder is called: it
    /// may read the statistics.
    #[expect(clippy::cast_precision_loss, reason = "gauges are floating-point")]
    pub(crate) fn publish(&self, statistics: &Statistics) {
        if !self.enabled {
            return;
        }
        let metrics = self.metrics();
        metrics.violators.set("", statistics.violators.count as f64);
        metrics
            .violating_addresses
            .set("", statistics.violating_addresses.count as f64);
        metrics
            .worst_offender
            .set("", statistics.worst_offender_denials as f64);
        metrics
            .ordinary_denied
            .set("", statistics.ordinary_denied.unwrap_or_default());
        for kind in AlertKind::ALL {
            let firing = statistics.alerts.iter().filter(|alert| alert.kind == kind);
            metrics.alerts.set(kind.name(), firing.count() as f64);
        }
        let store = &statistics.store;
        metrics
            .store_healthy
            .set("", f64::from(u8::from(store.healthy)));
        metrics
            .store_keys
            .set("", store.keys.unwrap_or_default() as f64);
        let evictions = store.evictions.unwrap_or_default();
        let before = self.evictions.swap(evictions, Ordering::Relaxed);
        metrics
            .store_evictions
            .add("", evictions.saturating_sub(before));
        metrics
            .policy_version
            .set("", statistics.policy_version as f64);
        let known = statistics.endpoints.iter();
        let remaining: HashMap<&str, Option<f64>> = known
            .map(|endpoint| (&*endpoint.name, endpoint.average_remaining))
            .collect();
        for endpoint in self.endpoints.all() {
            let remaining = remaining.get(&**endpoint.name()).copied().flatten();
            endpoint
                .metrics
                .endpoint(endpoint.name())
                .remaining
                .set("", remaining.unwrap_or(f64::NAN));
        }
        for policy in self.policies.all() {
            policy.metrics.policy(policy.name());
        }
    }
}
