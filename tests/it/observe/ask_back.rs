//! Whoever is told of something may ask for more: nobody is called under a lock.

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

/// Does something that may never end.
fn ends<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || done.send(act()));
    let ended = is_done.recv_timeout(Duration::from_secs(30));
    ended.expect("it waits for itself")
}

#[test]
fn who_hears_of_another_policy_may_ask_which_one_it_is() {
    let limits = Scene::new("1/hour").limits;
    let asked = ends(move || {
        let asked = Arc::new(OnceLock::new());
        let (asks, told) = (limits.clone(), Arc::clone(&asked));
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || {
                told.get_or_init(|| asks.policy_status().version());
                io::sink()
            })
            .finish();
        // While there is only one subscriber, what happens first elsewhere is switched off.
        let _another = Dispatch::new(NoSubscriber::default());
        tracing::subscriber::with_default(subscriber, || limits.replace_policy("2/hour")).unwrap();
        asked.get().copied()
    });
    assert_eq!(asked, Some(2));
}

/// Records nothing, and asks for statistics whenever a figure changes.
#[derive(Default)]
struct Curious(Arc<Asks>);

#[derive(Default)]
struct Asks {
    of: OnceLock<RateLimitLayer>,
    is_asking: AtomicBool,
}

impl Asks {
    fn ask(&self) {
        if let Some(limits) = self.of.get()
            && !self.is_asking.swap(true, Ordering::Relaxed)
        {
            drop(limits.statistics());
            self.is_asking.store(false, Ordering::Relaxed);
        }
    }
}

impl CounterFn for Asks {
    fn increment(&self, _: u64) {
        self.ask();
    }

    fn absolute(&self, _: u64) {}
}

impl GaugeFn for Asks {
    fn increment(&self, _: f64) {}

    fn decrement(&self, _: f64) {}

    fn set(&self, _: f64) {
        self.ask();
    }
}

impl Recorder for Curious {
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
fn who_records_figures_may_ask_for_statistics() {
    let denied = ends(|| {
        let recorder = Curious::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        with_local_recorder(&recorder, || {
            runtime.block_on(async {
                let scene = Scene::new("1/minute, fixed-window");
                recorder.0.of.set(scene.limits.clone()).unwrap();
                // Denied, too soon, admitted, denied; a look each second.
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
