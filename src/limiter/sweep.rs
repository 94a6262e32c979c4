//! Sweep at an interval.

use std::sync::Arc;
use std::time::Duration;

use super::Limiter;

/// Shortest interval, so that an interval of zero does not occupy a thread.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

impl Limiter {
    /// Removes expired counters at this interval, until the last clone of the limiter is dropped.
    ///
    /// Returns a future, so that you choose the runtime. Dropping it, or aborting its task, stops the
    /// sweep. A sweep that fails is logged at `DEBUG` and repeated at the next interval.
    ///
    /// The memory store sweeps a few counters with each decision, and Redis expires keys by itself. A
    /// sweep at an interval frees the memory of a process that decides nothing for a long time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Limiter;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let messages = Limiter::new("10/minute")?;
    /// let sweeper = tokio::spawn(messages.sweep_every(Duration::from_secs(60)));
    /// // …
    /// sweeper.abort();
    /// # Ok::<(), tollgate::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn sweep_every(&self, interval: Duration) -> impl Future<Output = ()> + Send + use<> {
        let interval = interval.max(MIN_INTERVAL);
        let clock = Arc::clone(&self.shared.clock);
        // Weak, so that the future does not keep the counters.
        let shared = Arc::downgrade(&self.shared);
        async move {
            loop {
                let deadline = clock.now().saturating_add(interval);
                clock.sleep_until(deadline).await;
                let Some(shared) = shared.upgrade() else {
                    return;
                };
                if let Err(error) = (Self { shared }).sweep().await {
                    tracing::debug!(%error, "expired counters were not swept");
                }
            }
        }
    }
}
