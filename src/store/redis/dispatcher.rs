//! Dispatcher of one server: takes requests from the queue, coalesces decisions, and sends calls.
//!
//! A script that decides about many requests costs Redis less than half per request than a call for
//! each. Therefore only a few calls are in flight at once, and requests that arrive meanwhile share
//! the next one. On an idle connection no request waits for another.

mod completion;
mod failures;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use redis::{Cmd, RedisError, Value};
use tokio::sync::{mpsc, watch};
use tokio::time::{Sleep, sleep};

use super::call;
use super::call_codec::{self, ScriptRef};
use super::cluster::NodeRoute;
use super::connection::{Connection, ConnectionHandle, State};
use super::error::{ErrorCause, RedisStoreError};
use super::queue::{QueueSettings, QueuedCommand, QueuedRequest, Response, ServerStatus};
use super::slot_queues::{CoalescedCall, SlotQueues};
use crate::clock::{Clock as _, SystemClock, Timestamp};
use crate::store::breaker::BreakerState;

/// A call that has ended.
pub(super) struct EndedCall {
    call: CoalescedCall,
    known: ScriptRef,
    result: Result<Value, RedisError>,
    connection: Connection,
}

/// Sends a call. The only future of [`Dispatcher::in_flight`], so that it needs no box.
async fn send_call(
    mut connection: Connection,
    command: Cmd,
    call: CoalescedCall,
    known: ScriptRef,
) -> EndedCall {
    let result = call::send(&mut connection, &command, call.mode).await;
    EndedCall {
        call,
        known,
        result,
        connection,
    }
}

enum Event {
    CallEnded(EndedCall),
    ConnectionChanged,
    TimerFired,
    /// Requests arrived, or the yield after a call is over.
    Continue,
}

/// Yield after each call, so that the connection writes it at once.
///
/// The server reads two calls that are written together at once, and replies to both together. The
/// next two calls would then be written together as well: the server would wait while the client
/// works, and the client while the server works. After each call the dispatcher therefore yields
/// once, so that the connection writes it, before it sends another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FlushState {
    #[default]
    MaySend,
    /// A call was sent; the dispatcher yields next.
    Sent,
    /// The dispatcher has yielded.
    Flushing,
}

/// Task that owns the queue, the calls in flight and the circuit breaker of one server.
pub(super) struct Dispatcher<F> {
    connection: ConnectionHandle,
    arrivals: mpsc::Receiver<QueuedRequest>,
    /// Whether requests may still arrive.
    is_open: bool,
    queues: SlotQueues,
    send: fn(Connection, Cmd, CoalescedCall, ScriptRef) -> F,
    in_flight: FuturesUnordered<F>,
    flush: FlushState,
    breaker: BreakerState<RedisStoreError>,
    /// Whether a decision was answered in time since the breaker closed. If not, a reopened breaker
    /// waits for the probe interval, so that it does not flap.
    is_proven: bool,
    /// Whether a request has expired whose call is still in flight.
    is_overdue: bool,
    status: watch::Sender<ServerStatus>,
    route: Option<NodeRoute>,
    deadline: Duration,
    clock: SystemClock,
    /// Returns a number between 0 and 1.
    random: fn() -> f64,
}

/// Creates the dispatcher of a server.
pub(super) fn dispatcher(
    settings: &QueueSettings,
    connection: ConnectionHandle,
    arrivals: mpsc::Receiver<QueuedRequest>,
    status: watch::Sender<ServerStatus>,
    route: Option<NodeRoute>,
) -> Dispatcher<impl Future<Output = EndedCall> + Send + use<>> {
    Dispatcher {
        connection,
        arrivals,
        is_open: true,
        queues: SlotQueues::new(settings.limits),
        send: send_call,
        in_flight: FuturesUnordered::new(),
        flush: FlushState::default(),
        breaker: BreakerState::new(FAILURE_THRESHOLD, PROBE_INTERVAL),
        is_proven: true,
        is_overdue: false,
        status,
        route,
        deadline: settings.deadline,
        clock: settings.clock.clone(),
        random: settings.random,
    }
}

/// Failures in a row that open the circuit breaker.
const FAILURE_THRESHOLD: u32 = 3;
/// Longest time between two probes of an open breaker.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// Requests that are taken from the channel at once.
const ARRIVALS_AT_ONCE: usize = 512;
/// Interval of liveness checks while a reply is overdue.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(50);

impl<F: Future<Output = EndedCall> + Send> Dispatcher<F> {
    pub(super) async fn run(mut self) {
        let mut arrived = Vec::new();
        let (mut timer, mut timer_at) = (pin!(sleep(Duration::ZERO)), None);
        while self.is_open || !self.queues.is_empty() {
            self.arm(timer.as_mut(), &mut timer_at);
            let event = poll_fn(|cx| {
                let timer = timer_at.map(|_| timer.as_mut());
                self.poll_event(cx, &mut arrived, timer)
            });
            let event = event.await;
            let now = self.clock.now();
            match event {
                Event::CallEnded(ended) => self.complete_call(ended, now),
                Event::ConnectionChanged => self.follow_connection(now),
                Event::TimerFired => timer_at = None,
                Event::Continue => {}
            }
            for request in arrived.drain(..) {
                self.accept(request, now);
            }
            self.expire_overdue(now);
            self.start_probe(now);
            self.dispatch_ready(now);
        }
    }

    /// Sets the timer, unless it fires early enough.
    fn arm(&self, mut timer: Pin<&mut Sleep>, timer_at: &mut Option<Timestamp>) {
        let probe_at = match self.connection.state() {
            State::Open(_) => self.breaker.probe_at(),
            State::Opening | State::Closed(_) => None,
        };
        let due = self.queues.next_due();
        if due.is_none() && probe_at.is_none() && !self.is_overdue {
            return;
        }
        let now = self.clock.now();
        let check = now.saturating_add(LIVENESS_INTERVAL);
        let check = self.is_overdue.then_some(check);
        let Some(next) = [due, probe_at, check].into_iter().flatten().min() else {
            return;
        };
        if timer_at.is_none_or(|at| next < at) {
            timer.set(sleep(next.duration_since(now)));
            *timer_at = Some(next);
        }
    }

    fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
        arrived: &mut Vec<QueuedRequest>,
        timer: Option<Pin<&mut Sleep>>,
    ) -> Poll<Event> {
        let mut continues = self.flush == FlushState::Flushing;
        if continues {
            self.flush = FlushState::MaySend;
        }
        if self.is_open
            && let Poll::Ready(count) = self.arrivals.poll_recv_many(cx, arrived, ARRIVALS_AT_ONCE)
        {
            self.is_open = count > 0;
            continues = true;
        }
        if let Poll::Ready(Some(ended)) = self.in_flight.poll_next_unpin(cx) {
            return Poll::Ready(Event::CallEnded(ended));
        }
        if self.connection.poll_change(cx).is_ready() {
            return Poll::Ready(Event::ConnectionChanged);
        }
        if timer.is_some_and(|timer| timer.poll(cx).is_ready()) {
            return Poll::Ready(Event::TimerFired);
        }
        if continues {
            return Poll::Ready(Event::Continue);
        }
        if self.flush == FlushState::Sent {
            self.flush = FlushState::Flushing;
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Queues a request, or fails it at once: without a connection, or while the breaker is open.
    /// A request that may take longer than a decision, such as one of an operator, is sent although
    /// the breaker is open.
    fn accept(&mut self, mut request: QueuedRequest, now: Timestamp) {
        let is_urgent = request.due <= now.saturating_add(self.deadline);
        let rejection = match self.connection.state() {
            State::Closed(error) => Some(error),
            State::Open(_) | State::Opening => self.breaker.rejection().filter(|_| is_urgent),
        };
        if let Some(error) = rejection.map(RedisStoreError::for_unsent) {
            self.finish(request, Err(error));
        } else if self.queues.is_full() {
            request.complete(Err(RedisStoreError::new(
                self.connection.place(),
                ErrorCause::QueueFull,
            )));
        } else {
            self.queues.push(request);
        }
    }

    /// Sends as many calls as may be in flight.
    fn dispatch_ready(&mut self, now: Timestamp) {
        while self.flush == FlushState::MaySend
            && let State::Open(connection) = self.connection.state()
        {
            let connection = connection.clone();
            let Some(call) = self.queues.next() else {
                return;
            };
            self.send(call, ScriptRef::Hash, connection, now);
            if self.queues.is_coalescing() {
                self.flush = FlushState::Sent;
            }
        }
    }

    fn send(
        &mut self,
        call: CoalescedCall,
        known: ScriptRef,
        connection: Connection,
        now: Timestamp,
    ) {
        let command = match self.queues.command(call.members[0]) {
            QueuedCommand::Decide(_) => call_codec::command(self.queues.decisions(&call), known),
            QueuedCommand::Script(script, command) => match known {
                ScriptRef::Hash => command.clone(),
                ScriptRef::Text => call::with_text(command, script),
            },
            QueuedCommand::Plain(command) => command.clone(),
            QueuedCommand::Probe => redis::cmd("PING"),
        };
        connection.liveness.call_sent(now);
        self.in_flight
            .push((self.send)(connection, command, call, known));
    }
}
