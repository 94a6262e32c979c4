//! Bringing alerts to whoever wants to hear of them.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::Poll;

use super::RequestPipeline;
use crate::calm::calmly;
use crate::clock::{self, Clock};
use crate::observe::{Alert, Watch};

impl RequestPipeline {
    /// Looks once a second and tells of alerts, as long as there is the pipeline.
    ///
    /// A future, and not a task or a thread: whoever calls has a place where it can run, and it
    /// is theirs to say where.
    pub(crate) fn tell_alerts<F, R>(
        self: &Arc<Self>,
        mut callback: F,
    ) -> impl Future<Output = ()> + Send + use<F, R>
    where
        F: FnMut(Alert) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let (pipeline, clock) = (Arc::downgrade(self), self.clock.clone());
        // Whoever comes later is told of what is firing, and of what changes from then on.
        let (mut alerts, mut known) = self.watch.alerts_firing();
        async move {
            loop {
                for alert in alerts {
                    let alert = alert.offset_by(clock.wall_offset());
                    tell(&mut callback, alert).await;
                }
                let Some(next) = next(&pipeline, &*clock, known).await else {
                    return;
                };
                (alerts, known) = next;
            }
        }
    }
}

/// What is told after the next second has begun. Nothing more, once there is no pipeline.
async fn next(
    pipeline: &Weak<RequestPipeline>,
    clock: &dyn Clock,
    known: u64,
) -> Option<(Vec<Alert>, u64)> {
    clock.sleep_until(Watch::looks_next(clock.now())).await;
    let pipeline = pipeline.upgrade()?;
    pipeline.tick(clock::now(clock));
    Some(pipeline.watch.alerts_after(known))
}

/// A callback that panics has heard of this one, and hears of the next.
async fn tell<R: Future<Output = ()> + Send + 'static>(
    callback: &mut (impl FnMut(Alert) -> R + Send + 'static),
    alert: Alert,
) {
    let Some(future) = calmly(|| callback(alert)) else {
        return;
    };
    let mut future = Box::pin(future);
    poll_fn(|context| {
        let polled = calmly(|| future.as_mut().poll(context));
        polled.unwrap_or(Poll::Ready(()))
    })
    .await;
}
