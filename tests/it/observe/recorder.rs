//! A recorder of metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ::metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

/// Metrics by name and labels: `name{label=value}`.
#[derive(Default)]
pub(super) struct TestRecorder {
    known: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    histograms: Mutex<BTreeMap<String, Arc<Values>>>,
    described: Mutex<BTreeMap<String, String>>,
}

#[derive(Default)]
struct Values(Mutex<Vec<f64>>);

impl HistogramFn for Values {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

fn named(key: &Key) -> String {
    let labels = key.labels();
    let labels: Vec<String> = labels
        .map(|label| format!("{}={}", label.key(), label.value()))
        .collect();
    format!("{}{{{}}}", key.name(), labels.join(","))
}

impl TestRecorder {
    fn raw(&self, name: &str) -> Option<u64> {
        let known = self.known.lock().unwrap();
        known.get(name).map(|value| value.load(Ordering::Relaxed))
    }

    pub(super) fn counter(&self, name: &str) -> u64 {
        self.raw(name)
            .unwrap_or_else(|| panic!("no {name} in {:?}", self.names()))
    }

    pub(super) fn gauge(&self, name: &str) -> f64 {
        f64::from_bits(self.counter(name))
    }

    pub(super) fn values(&self, name: &str) -> Vec<f64> {
        let histograms = self.histograms.lock().unwrap();
        let found = histograms.get(name);
        found.map_or_else(Vec::new, |values| values.0.lock().unwrap().clone())
    }

    /// Returns the names of all series, with labels.
    pub(super) fn names(&self) -> Vec<String> {
        let known = self.known.lock().unwrap();
        let histograms = self.histograms.lock().unwrap();
        known.keys().chain(histograms.keys()).cloned().collect()
    }

    pub(super) fn described(&self) -> Vec<String> {
        self.described.lock().unwrap().keys().cloned().collect()
    }

    fn describe(&self, name: &KeyName, text: &SharedString) {
        let mut described = self.described.lock().unwrap();
        described.insert(name.as_str().to_owned(), text.to_string());
    }
}

impl Recorder for TestRecorder {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        self.describe(&name, &text);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        self.describe(&name, &text);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        self.describe(&name, &text);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let mut known = self.known.lock().unwrap();
        Counter::from_arc(Arc::clone(known.entry(named(key)).or_default()))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let mut known = self.known.lock().unwrap();
        Gauge::from_arc(Arc::clone(known.entry(named(key)).or_default()))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        let mut histograms = self.histograms.lock().unwrap();
        Histogram::from_arc(Arc::clone(histograms.entry(named(key)).or_default()))
    }
}
