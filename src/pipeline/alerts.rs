//! Delivery of alerts to a callback.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::Poll;

use super::RequestPipeline;
use crate::catch_panic::catch_panic;
use crate::clock::{self, Clock};
use crate::observe::{Alert, Telemetry};

impl RequestPipeline {
    /// Evaluates alerts once a second and delivers them, until the pipeline is dropped.
    ///
    /// A future, so that the caller chooses the runtime.
    pub(crate) fn deliver_alerts<F, R>(
        self: &Arc<Self>,
        mut callback: F,
    ) -> impl Future<Output = ()> + Send + use<F, R>
    where
        F: FnMut(Alert) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let (pipeline, clock) = (Arc::downgrade(self), self.clock.clone());
        // First the alerts that are firing, then every change.
        let (mut alerts, mut known) = self.telemetry.alerts_firing();
        async move {
            loop {
                for alert in alerts {
                    let alert = alert.offset_by(clock.wall_offset());
                    call_back(&mut callback, alert).await;
                }
                let Some(next) = next(&pipeline, &*clock, known).await else {
                    return;
                };
                (alerts, known) = next;
            }
        }
    }
}

/// Returns the changes after the next second has begun; `None` once the pipeline is dropped.
async fn next(
    pipeline: &Weak<RequestPipeline>,
    clock: &dyn Clock,
    known: u64,
) -> Option<(Vec<Alert>, u64)> {
    clock.sleep_until(Telemetry::next_tick(clock.now())).await;
    let pipeline = pipeline.upgrade()?;
    pipeline.tick(clock::now(clock));
    Some(pipeline.telemetry.alerts_after(known))
}

/// Calls the callback and awaits its future. A panic is caught; later alerts are still delivered.
async fn call_back<R: Future<Output = ()> + Send + 'static>(
    callback: &mut (impl FnMut(Alert) -> R + Send + 'static),
    alert: Alert,
) {
    let Some(future) = catch_panic(|| callback(alert)) else {
        return;
    };
    let mut future = Box::pin(future);
    poll_fn(|context| {
        let polled = catch_panic(|| future.as_mut().poll(context));
        polled.unwrap_or(Poll::Ready(()))
    })
    .await;
}
