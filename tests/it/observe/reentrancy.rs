//! Subscribers and recorders may call the layer: none is called under a lock.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use ::metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString,
    Unit, with_local_recorder,
};
use tollgate::RateLimitLayer;
use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;

use super::Scene;

/// Runs a closure that may deadlock.
fn ends<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || done.send(act()));
    let ended = is_done.recv_timeout(Duration::from_secs(30));
    ended.expect("deadlock")
}

#[test]
fn a_subscriber_may_read_the_policy_status() {
    let limits = Scene::new("1/hour").limits;
    let version = ends(move || {
        let version = Arc::new(OnceLock::new());
        let (layer, seen) = (limits.clone(), Arc::clone(&version));
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || {
                seen.get_or_init(|| layer.policy_status().version());
                io::sink()
            })
            .finish();
        // With only one subscriber, callsites that another thread hits first are disabled.
        let _another = Dispatch::new(NoSubscriber::default());
        tracing::subscriber::with_default(subscriber, || limits.replace_policy("2/hour")).unwrap();
        version.get().copied()
    });
    assert_eq!(version, Some(2));
}

/// Reads the statistics whenever a metric changes.
#[derive(Default)]
struct ReentrantRecorder(Arc<ReentrantMetric>);

#[derive(Default)]
struct ReentrantMetric {
    of: OnceLock<RateLimitLayer>,
    is_reading: AtomicBool,
}

impl ReentrantMetric {
    fn read_statistics(&self) {
        if let Some(limits) = self.of.get()
            && !self.is_reading.swap(true, Ordering::Relaxed)
        {
            drop(limits.statistics());
            self.is_reading.store(false, Ordering::Relaxed);
        }
    }
}

impl CounterFn for ReentrantMetric {
    fn increment(&self, _: u64) {
        self.read_statistics();
    }

    fn absolute(&self, _: u64) {}
}

impl GaugeFn for ReentrantMetric {
    fn increment(&self, _: f64) {}

    fn decrement(&self, _: f64) {}

    fn set(&self, _: f64) {
        self.read_statistics();
    }
}

impl Recorder for ReentrantRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::clone(&self.0))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::clone(&self.0))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn a_recorder_may_read_the_statistics() {
    let denied = ends(|| {
        let recorder = ReentrantRecorder::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        with_local_recorder(&recorder, || {
            runtime.block_on(async {
                let scene = Scene::new("1/minute, fixed-window");
                recorder.0.of.set(scene.limits.clone()).unwrap();
                // Denied, too soon, admitted, denied; a tick each second.
                for seconds in [0, 0, 1, 59, 1] {
                    scene.clock.advance(Duration::from_secs(seconds));
                    scene.user("GET /", "alice").await;
                }
                scene.limits.statistics().totals.denied
            })
        })
    });
    assert_eq!(denied, 3);
}
