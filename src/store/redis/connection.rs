//! The connection to Redis: kept open by a task, lent to calls.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use redis::aio::MultiplexedConnection;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::sleep;

use super::backoff::Backoff;
use super::connect::Driver;
use super::error::RedisStoreError;
use super::liveness::Liveness;
use super::source::Source;
use crate::clock::SystemClock;

/// A connection that was of use for this long has earned an attempt without a wait.
const SETTLED: Duration = Duration::from_secs(2);

/// What there is at present.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// A connection is on its way, and worth waiting for.
    Opening,
    Open(Connection),
    /// There is none. The task tries again by itself; nobody has to wait for that.
    Closed(RedisStoreError),
}

/// A connection, as calls use it.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) connection: MultiplexedConnection,
    pub(super) health: Arc<Liveness>,
}

/// Where calls find the connection.
#[derive(Clone, Debug)]
pub(super) struct ConnectionHandle {
    state: watch::Receiver<State>,
    place: Arc<str>,
}

impl ConnectionHandle {
    /// Starts the task that keeps the connection. It ends when the last link is dropped.
    pub(super) fn start(source: Source, patience: Duration, runtime: &Handle) -> Self {
        let (sender, state) = watch::channel(State::Opening);
        let place = source.place();
        let keeper = ConnectionTask {
            source,
            place: Arc::clone(&place),
            patience,
            sender,
            clock: SystemClock::new(),
        };
        runtime.spawn(keeper.keep());
        Self { state, place }
    }

    /// The connection. Waits if one is on its way, and for no other.
    pub(super) async fn line(&self) -> Result<Connection, RedisStoreError> {
        // Most of the time it is there.
        if let State::Open(line) = &*self.state.borrow() {
            return Ok(line.clone());
        }
        let mut state = self.state.clone();
        loop {
            match &*state.borrow_and_update() {
                State::Open(line) => return Ok(line.clone()),
                State::Closed(trouble) => return Err(trouble.clone()),
                State::Opening => {}
            }
            if state.changed().await.is_err() {
                return Err(RedisStoreError::no_runtime(&self.place));
            }
        }
    }

    /// What there is at present.
    pub(super) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Completes when no connection is on its way, be it that there is one.
    pub(super) async fn settled(self) {
        let mut state = self.state;
        let _ = state
            .wait_for(|state| !matches!(state, State::Opening))
            .await;
    }

    /// How the server is called when there is something to tell.
    pub(super) fn place(&self) -> &Arc<str> {
        &self.place
    }

    /// Whether there is a connection now.
    pub(super) fn is_open(&self) -> bool {
        matches!(&*self.state.borrow(), State::Open(_))
    }
}

/// Keeps the connection open.
struct ConnectionTask {
    source: Source,
    place: Arc<str>,
    patience: Duration,
    sender: watch::Sender<State>,
    clock: SystemClock,
}

impl ConnectionTask {
    async fn keep(mut self) {
        let mut backoff = Backoff::default();
        // The first attempt comes at once, and so does the one after a connection that had lasted.
        let mut wait = backoff.next();
        loop {
            if !unless_abandoned(&self.sender, sleep(wait)).await {
                return;
            }
            let trouble = match self.source.open().await {
                Ok((connection, driver)) => {
                    let health = Arc::new(Liveness::new(self.clock.clone(), self.patience));
                    let line = Connection {
                        connection,
                        health: Arc::clone(&health),
                    };
                    self.sender.send_replace(State::Open(line));
                    if !self.drive(driver, &health).await {
                        return;
                    }
                    if health.has_lasted(SETTLED) {
                        backoff.reset();
                    }
                    let hung_up = || RedisStoreError::hung_up(&self.place);
                    health.why().unwrap_or_else(hung_up)
                }
                Err(trouble) => trouble,
            };
            wait = backoff.next();
            self.sender.send_replace(if wait.is_zero() {
                State::Opening
            } else {
                State::Closed(trouble)
            });
        }
    }

    /// Lets the bytes of a connection move until it ends or is condemned. Says whether there is
    /// still somebody who needs one.
    async fn drive(&mut self, driver: Driver, health: &Liveness) -> bool {
        // In a task of its own, so that it is not in this one's way.
        let mut driver = tokio::spawn(driver);
        let condemned = pin!(health.condemned());
        let moved = pin!(async { health.condemn(&self.source.has_moved().await) });
        let over = select(&mut driver, select(condemned, moved));
        let needed = unless_abandoned(&self.sender, over).await;
        // Closes it; whoever still waits for an answer is told so.
        driver.abort();
        needed
    }
}

/// Waits for something, unless the store is dropped meanwhile.
async fn unless_abandoned(sender: &watch::Sender<State>, something: impl Future) -> bool {
    let (something, abandoned) = (pin!(something), pin!(sender.closed()));
    matches!(select(something, abandoned).await, Either::Left(_))
}
