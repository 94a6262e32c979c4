//! Connection to one server, opened and reopened by a task of its own.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{Either, select};
use redis::aio::MultiplexedConnection;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::backoff::Backoff;
use super::connect::Driver;
use super::error::{ErrorCause, RedisStoreError};
use super::liveness::Liveness;
use super::queue::QueueSettings;
use super::source::ConnectionSource;
use crate::clock::SystemClock;
use crate::error::StoreErrorKind;

/// A connection that replied and lasted this long resets the back-off.
const STABLE_AFTER: Duration = Duration::from_secs(2);

/// State of the connection.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// An attempt runs that is worth waiting for: the first one, or the one right after a stable
    /// connection was lost.
    Opening,
    Open(Connection),
    /// Back-off. Attempts go on, and requests fail at once.
    Closed(RedisStoreError),
}

/// An open connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) multiplexed: MultiplexedConnection,
    pub(super) liveness: Arc<Liveness>,
}

/// Receives the states of the connection. The connection closes when this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionHandle {
    state: State,
    changes: mpsc::Receiver<State>,
    place: Arc<str>,
}

impl ConnectionHandle {
    /// Starts the task that keeps the connection open.
    pub(super) fn start(source: ConnectionSource, settings: &QueueSettings) -> Self {
        let (sender, changes) = mpsc::channel(1);
        let place = source.place();
        let task = ConnectionTask {
            source,
            place: Arc::clone(&place),
            max_silence: settings.max_silence,
            sender,
            clock: settings.clock.clone(),
            random: settings.random,
        };
        settings.runtime.spawn(task.run());
        Self {
            state: State::Opening,
            changes,
            place,
        }
    }

    pub(super) const fn state(&self) -> &State {
        &self.state
    }

    /// Completes when the state has changed.
    pub(super) fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Poll::Ready(state) = self.changes.poll_recv(cx) else {
            return Poll::Pending;
        };
        // The task ends before this handle only if its runtime does.
        let ended = || State::Closed(RedisStoreError::new(&self.place, ErrorCause::NoRuntime));
        self.state = state.unwrap_or_else(ended);
        Poll::Ready(())
    }

    /// Address of the server, for error messages.
    pub(super) const fn place(&self) -> &Arc<str> {
        &self.place
    }
}

/// Keeps a connection open.
struct ConnectionTask {
    source: ConnectionSource,
    place: Arc<str>,
    max_silence: Duration,
    sender: mpsc::Sender<State>,
    clock: SystemClock,
    random: fn() -> f64,
}

impl ConnectionTask {
    async fn run(mut self) {
        let mut backoff = Backoff::default();
        let mut wait = backoff.next((self.random)());
        loop {
            if !unless_dropped(&self.sender, sleep(wait)).await {
                return;
            }
            let error = match self.source.open().await {
                Ok((multiplexed, driver)) => {
                    let liveness = Arc::new(Liveness::new(self.clock.clone(), self.max_silence));
                    let connection = Connection {
                        multiplexed,
                        liveness: Arc::clone(&liveness),
                    };
                    if self.sender.send(State::Open(connection)).await.is_err()
                        || !self.drive(driver, &liveness).await
                    {
                        return;
                    }
                    if liveness.has_lasted(STABLE_AFTER) {
                        backoff.reset();
                    }
                    let closed = || RedisStoreError::new(&self.place, ErrorCause::ClosedByServer);
                    liveness.error().unwrap_or_else(closed)
                }
                Err(error) => error,
            };
            wait = backoff.next((self.random)());
            // Waiting for another attempt does not help against a wrong configuration.
            let is_worth_waiting = error.kind() == StoreErrorKind::Unavailable;
            let state = if wait.is_zero() && is_worth_waiting {
                State::Opening
            } else {
                State::Closed(error)
            };
            if self.sender.send(state).await.is_err() {
                return;
            }
        }
    }

    /// Runs the I/O of a connection until it ends or is given up. Returns whether the handle still
    /// exists.
    async fn drive(&mut self, driver: Driver, liveness: &Liveness) -> bool {
        // In its own task, so that a wake-up for I/O does not poll this one.
        let mut driver = tokio::spawn(driver);
        let given_up = pin!(liveness.given_up());
        let moved = pin!(async { liveness.give_up(&self.source.has_moved().await) });
        let over = select(&mut driver, select(given_up, moved));
        let is_needed = unless_dropped(&self.sender, over).await;
        // Closes the connection. Calls in flight fail.
        driver.abort();
        is_needed
    }
}

/// Waits for a future. Returns `false` if the handle was dropped first.
async fn unless_dropped(sender: &mpsc::Sender<State>, future: impl Future) -> bool {
    let (future, dropped) = (pin!(future), pin!(sender.closed()));
    matches!(select(future, dropped).await, Either::Left(_))
}
