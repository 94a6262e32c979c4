//! Handles of metrics, registered with the recorder of the application.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use ::metrics::{
    Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder, SharedString, with_recorder,
};

use super::{EndpointMetrics, LayerMetrics, METRICS, MetricKind, MetricLabel, PolicyMetrics};

const METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// Handles of all series of one metric, by the value of the label that has fixed values. A metric
/// without such a label has one series, with the value `""`.
#[derive(Debug)]
pub(in crate::observe) struct Series<T>(Box<[(&'static str, T)]>);

/// Handle of one series.
pub(in crate::observe) trait Handle: Sized {
    fn register(recorder: &dyn Recorder, key: &Key) -> Self;
}

impl Handle for Counter {
    fn register(recorder: &dyn Recorder, key: &Key) -> Self {
        recorder.register_counter(key, &METADATA)
    }
}

impl Handle for Gauge {
    fn register(recorder: &dyn Recorder, key: &Key) -> Self {
        recorder.register_gauge(key, &METADATA)
    }
}

impl Handle for Histogram {
    fn register(recorder: &dyn Recorder, key: &Key) -> Self {
        recorder.register_histogram(key, &METADATA)
    }
}

impl<T: Handle> Series<T> {
    pub(super) fn register(metric: &'static str, labels: &[MetricLabel], name: &Arc<str>) -> Self {
        let fixed = labels.iter().find(|label| !label.values.is_empty());
        let values = fixed.map_or(&[""][..], |label| label.values);
        let series = values.iter().map(|value| {
            let labels = labels.iter().map(|label| {
                let value = if label.values.is_empty() {
                    SharedString::from_shared(Arc::clone(name))
                } else {
                    SharedString::const_str(value)
                };
                Label::new(label.name, value)
            });
            let key = Key::from_parts(metric, labels.collect::<Vec<_>>());
            (
                *value,
                with_recorder(|recorder| T::register(recorder, &key)),
            )
        });
        Self(series.collect())
    }
}

impl<T> Series<T> {
    #[inline]
    fn with(&self, value: &str) -> Option<&T> {
        let found = self.0.iter().find(|(known, _)| *known == value);
        debug_assert!(found.is_some(), "{value:?} is not a value of this label");
        found.map(|(_, handle)| handle)
    }
}

impl Series<Counter> {
    #[inline]
    pub(in crate::observe) fn add(&self, value: &str, count: u64) {
        if let Some(counter) = self.with(value) {
            counter.increment(count);
        }
    }

    /// Adds what `total` has grown since the last call. Keeps it in `published`. Adds nothing if the
    /// total is not known.
    pub(super) fn add_since(&self, value: &str, published: &AtomicU64, total: Option<u64>) {
        let Some(total) = total else {
            return;
        };
        // Totals only grow. With `swap`, a tick that another one has overtaken would lower the base,
        // and the difference would be added twice.
        let before = published.fetch_max(total, Ordering::Relaxed);
        self.add(value, total.saturating_sub(before));
    }
}

impl Series<Gauge> {
    pub(in crate::observe) fn set(&self, value: &str, number: f64) {
        if let Some(gauge) = self.with(value) {
            gauge.set(number);
        }
    }
}

impl Series<Histogram> {
    pub(in crate::observe) fn record(&self, value: &str, number: f64) {
        if let Some(histogram) = self.with(value) {
            histogram.record(number);
        }
    }
}

impl LayerMetrics {
    /// Registers and describes the metrics of a layer.
    pub(in crate::observe) fn describe_and_register() -> Self {
        for metric in METRICS {
            let (name, description) = (metric.name, metric.description);
            match metric.kind {
                MetricKind::Counter => ::metrics::describe_counter!(name, description),
                MetricKind::Gauge => ::metrics::describe_gauge!(name, description),
                MetricKind::Histogram => ::metrics::describe_histogram!(name, description),
            }
        }
        Self::register(&Arc::default())
    }
}

/// Handles of one quota or one endpoint. Empty until the first tick or the first event.
#[derive(Debug, Default)]
pub(in crate::observe) struct NamedHandles {
    policy: OnceLock<PolicyMetrics>,
    endpoint: OnceLock<EndpointMetrics>,
}

impl NamedHandles {
    #[inline]
    pub(in crate::observe) fn policy(&self, name: &Arc<str>) -> &PolicyMetrics {
        self.policy.get_or_init(|| PolicyMetrics::register(name))
    }

    #[inline]
    pub(in crate::observe) fn endpoint(&self, name: &Arc<str>) -> &EndpointMetrics {
        self.endpoint
            .get_or_init(|| EndpointMetrics::register(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_added_once_whatever_the_order_of_the_ticks() {
        let cell = Arc::new(AtomicU64::new(0));
        let counter = Counter::from_arc(Arc::clone(&cell));
        let series = Series(Box::new([("", counter)]));
        let published = AtomicU64::new(0);
        // One total was read before another tick published a later one; one is not known.
        for total in [Some(5), Some(3), Some(5), None, Some(7)] {
            series.add_since("", &published, total);
        }
        assert_eq!(cell.load(Ordering::Relaxed), 7);
    }
}
