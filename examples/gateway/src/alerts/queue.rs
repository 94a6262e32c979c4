//! Alerts that wait for their delivery.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;
use tollgate::observe::Alert;

/// Bounded queue. The most severe alert leaves it first, and of equally severe ones the oldest.
#[derive(Default)]
pub(crate) struct AlertQueue {
    /// Oldest first.
    waiting: Mutex<Vec<Alert>>,
    added: Notify,
}

impl AlertQueue {
    const CAPACITY: usize = 100;

    /// Adds an alert. If the queue was full, returns the alert that is dropped: the least severe, and of
    /// equally severe ones the newest.
    pub(crate) fn push(&self, alert: Alert) -> Option<Alert> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(alert);
        self.added.notify_one();
        if waiting.len() <= Self::CAPACITY {
            return None;
        }
        // Of several minima, the first: in reverse order the newest.
        let alerts = waiting.iter().enumerate().rev();
        let (least, _) = alerts.min_by_key(|(_, alert)| alert.severity())?;
        Some(waiting.remove(least))
    }

    /// Waits for an alert. Has one receiver.
    pub(crate) async fn pop(&self) -> Alert {
        loop {
            if let Some(alert) = self.try_pop() {
                return alert;
            }
            self.added.notified().await;
        }
    }

    fn try_pop(&self) -> Option<Alert> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Of several maxima, the last: in reverse order the oldest.
        let alerts = waiting.iter().enumerate().rev();
        let (most, _) = alerts.max_by_key(|(_, alert)| alert.severity())?;
        Some(waiting.remove(most))
    }
}
