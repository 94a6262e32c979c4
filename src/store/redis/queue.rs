//! Request queue of one server: the only way to call Redis.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use redis::{Cmd, FromRedisValue, Value};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use super::cluster::NodeRoute;
use super::connection::ConnectionHandle;
use super::dispatcher::dispatcher;
use super::error::{ErrorCause, RedisStoreError};
use super::refunds::PendingRefund;
use super::request::Request;
use super::script::Script;
use super::slot_queues::{CoalescingLimits, SlotQueues};
use super::source::ConnectionSource;
use crate::clock::{Clock as _, SystemClock, Timestamp};

/// Reply to a decision.
pub(super) type Reply = Result<Bytes, RedisStoreError>;

/// One call, or a part of a coalesced call.
#[derive(Debug)]
pub(super) enum QueuedCommand {
    /// Decides about a batch. Decisions of one slot share a call.
    Decide(Request),
    /// `EVALSHA`, and `EVAL` if the server does not have the script.
    Script(&'static Script, Cmd),
    /// Any other command.
    Plain(Cmd),
    /// `PING` of an open circuit breaker.
    Probe,
}

impl QueuedCommand {
    /// A call of a script with its keys and arguments.
    pub(super) fn script(script: &'static Script, keys: &[String], arguments: &[&[u8]]) -> Self {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&script.hash).arg(keys.len()).arg(keys);
        Self::Script(script, command.arg(arguments).clone())
    }

    /// Returns how the command is sent, unless a server redirects it.
    pub(super) const fn mode(&self) -> SendMode {
        match self {
            Self::Decide(_) => SendMode::Coalesced,
            Self::Script(..) | Self::Plain(_) | Self::Probe => SendMode::Alone,
        }
    }
}

/// Reply to a [`QueuedCommand`]: bytes to a decision, a value to every other command.
#[derive(Debug)]
pub(super) enum Response {
    Decision(Bytes),
    Value(Value),
}

/// Sends the reply to one request.
#[derive(Debug)]
pub(super) struct ReplySender {
    sender: oneshot::Sender<Result<Response, RedisStoreError>>,
    /// If the request is a refund: pending until the reply is sent, or until the request is dropped.
    refund: Option<PendingRefund>,
}

impl ReplySender {
    /// Sends the reply. A caller that has dropped its future does not get it.
    pub(super) fn send(self, reply: Result<Response, RedisStoreError>) {
        let _ = self.sender.send(reply);
        drop(self.refund);
    }
}

/// How a request is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SendMode {
    /// In one call with other decisions of its slot.
    #[default]
    Coalesced,
    /// In a call of its own.
    Alone,
    /// In a call of its own, after `ASKING`: the server imports the slot.
    Asking,
}

/// Entry of a queue.
#[derive(Debug)]
pub(super) struct QueuedRequest {
    pub(super) command: QueuedCommand,
    /// Cluster slot of the key. 0 on a single server.
    pub(super) slot: u16,
    pub(super) mode: SendMode,
    /// Expiry. An unsent request is dropped then; a sent one fails, and its reply is discarded.
    pub(super) due: Timestamp,
    /// Time between start and `due`, for error messages.
    pub(super) within: Duration,
    /// Redirects that were followed.
    pub(super) hops: u8,
    /// Times that the request was repeated after `TRYAGAIN`.
    pub(super) retries: u32,
    /// `None` once the request has its reply.
    reply: Option<ReplySender>,
}

impl QueuedRequest {
    /// Creates an entry, and the future of its reply.
    pub(super) fn new(
        command: QueuedCommand,
        slot: u16,
        (due, within): (Timestamp, Duration),
        place: &Arc<str>,
    ) -> (Self, PendingReply) {
        let (sender, receiver) = oneshot::channel();
        let reply = ReplySender {
            sender,
            refund: None,
        };
        let request = Self {
            mode: command.mode(),
            command,
            slot,
            due,
            within,
            hops: 0,
            retries: 0,
            reply: Some(reply),
        };
        let place = Arc::clone(place);
        (request, PendingReply { receiver, place })
    }

    /// Counts the request as a refund until it has its reply.
    pub(super) fn with_refund(mut self, refund: Option<PendingRefund>) -> Self {
        if let Some(reply) = &mut self.reply {
            reply.refund = refund;
        }
        self
    }

    /// Sends the reply, unless the request has one.
    pub(super) fn complete(&mut self, reply: Result<Response, RedisStoreError>) {
        if let Some(sender) = self.reply.take() {
            sender.send(reply);
        }
    }

    /// Takes what sends the reply, if there was none yet.
    pub(super) fn take_reply(&mut self) -> Option<ReplySender> {
        self.reply.take()
    }

    /// Returns whether the request has no reply yet.
    pub(super) const fn is_pending(&self) -> bool {
        self.reply.is_some()
    }

    /// Index of the queue in [`SlotQueues`]. Other commands than decisions have a queue of their
    /// own, so that no decision waits for a slow command.
    pub(super) fn queue_index(&self) -> usize {
        match self.command {
            QueuedCommand::Decide(_) => 1 + usize::from(self.slot),
            QueuedCommand::Script(..) | QueuedCommand::Plain(_) | QueuedCommand::Probe => 0,
        }
    }
}

/// Future of a reply. Dropping it cancels nothing.
#[derive(Debug)]
pub(super) struct PendingReply {
    receiver: oneshot::Receiver<Result<Response, RedisStoreError>>,
    place: Arc<str>,
}

impl PendingReply {
    /// Waits for the reply to a decision.
    pub(super) async fn decision(self) -> Reply {
        self.read(|bytes| Some(bytes.clone())).await
    }

    /// Waits for the reply to a decision, and reads it.
    pub(super) async fn read<T>(
        mut self,
        read: impl FnOnce(&Bytes) -> Option<T>,
    ) -> Result<T, RedisStoreError> {
        let read = match (&mut self).await? {
            Response::Decision(bytes) => read(&bytes),
            Response::Value(_) => None,
        };
        read.ok_or_else(|| RedisStoreError::new(&self.place, ErrorCause::UnexpectedReply))
    }

    /// Waits for the reply to a command.
    pub(super) async fn value<T: FromRedisValue>(mut self) -> Result<T, RedisStoreError> {
        match (&mut self).await? {
            Response::Value(value) => T::from_redis_value(value)
                .map_err(|error| RedisStoreError::calling(&self.place, error.into())),
            Response::Decision(_) => Err(RedisStoreError::new(
                &self.place,
                ErrorCause::UnexpectedReply,
            )),
        }
    }
}

#[cfg(test)]
impl PendingReply {
    /// Returns the reply if it is there.
    pub(super) fn try_reply(&mut self) -> Option<Result<Response, RedisStoreError>> {
        self.receiver.try_recv().ok()
    }
}

impl Future for PendingReply {
    type Output = Result<Response, RedisStoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver).poll(cx).map(|reply| {
            // The dispatcher answers every request unless its runtime ends.
            reply.unwrap_or_else(|_| Err(RedisStoreError::new(&self.place, ErrorCause::NoRuntime)))
        })
    }
}

/// State of one server as its dispatcher publishes it.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerStatus {
    pub(super) is_connected: bool,
    /// Time of the first failure since the last success, and the last error.
    pub(super) failing: Option<(Timestamp, RedisStoreError)>,
}

/// Handle to the queue of one server.
#[derive(Clone, Debug)]
pub(super) struct RequestQueue {
    inbox: mpsc::Sender<QueuedRequest>,
    status: watch::Receiver<ServerStatus>,
    clock: SystemClock,
    place: Arc<str>,
}

/// Settings that all queues of a store share.
#[derive(Clone, Debug)]
pub(super) struct QueueSettings {
    pub(super) limits: CoalescingLimits,
    /// How long a connection may stay silent while a reply is due.
    pub(super) max_silence: Duration,
    /// Deadline of a decision.
    pub(super) deadline: Duration,
    pub(super) runtime: Handle,
    pub(super) clock: SystemClock,
    /// Returns a number between 0 and 1, for back-off and probes.
    pub(super) random: fn() -> f64,
}

impl QueueSettings {
    /// Starts connection and dispatcher of a server. Both end when the last handle of the queue is
    /// dropped and every request has its reply.
    pub(super) fn start(&self, source: ConnectionSource, route: Option<NodeRoute>) -> RequestQueue {
        let place = source.place();
        let connection = ConnectionHandle::start(source, self);
        let (inbox, arrivals) = mpsc::channel(SlotQueues::CAPACITY);
        let (publisher, status) = watch::channel(ServerStatus::default());
        let dispatcher = dispatcher(self, connection, arrivals, publisher, route);
        self.runtime.spawn(dispatcher.run());
        RequestQueue {
            inbox,
            status,
            clock: self.clock.clone(),
            place,
        }
    }
}

impl RequestQueue {
    /// Queues a command that has `within` to complete. It is sent even if the future is dropped.
    pub(super) fn enqueue(&self, command: QueuedCommand, within: Duration) -> PendingReply {
        let (request, reply) = self.request(command, within);
        self.push(request);
        reply
    }

    /// Queues a decision that has `within` to complete. It is sent even if the future is dropped.
    pub(super) fn decide(
        &self,
        request: Request,
        refund: Option<PendingRefund>,
        within: Duration,
    ) -> PendingReply {
        let (request, reply) = self.request(QueuedCommand::Decide(request), within);
        self.push(request.with_refund(refund));
        reply
    }

    fn request(&self, command: QueuedCommand, within: Duration) -> (QueuedRequest, PendingReply) {
        let due = self.clock.now().saturating_add(within);
        QueuedRequest::new(command, 0, (due, within), &self.place)
    }

    /// Queues a request, for example one that another server redirected.
    pub(super) fn push(&self, request: QueuedRequest) {
        if let Err(mpsc::error::TrySendError::Full(mut request)) = self.inbox.try_send(request) {
            request.complete(Err(RedisStoreError::new(
                &self.place,
                ErrorCause::QueueFull,
            )));
        }
    }

    /// Address of the server, for error messages.
    pub(super) fn place(&self) -> &Arc<str> {
        &self.place
    }

    pub(super) fn is_connected(&self) -> bool {
        self.status.borrow().is_connected
    }

    /// Completes when the server is connected, or an attempt to connect has failed.
    pub(super) async fn first_attempt(&self) {
        let mut status = self.status.clone();
        let has_ended = |status: &ServerStatus| status.is_connected || status.failing.is_some();
        // An error means that the dispatcher has ended, together with its runtime.
        let _ = status.wait_for(has_ended).await;
    }

    /// Returns since when the server fails, and why.
    pub(super) fn failing(&self) -> Option<(Timestamp, RedisStoreError)> {
        self.status.borrow().failing.clone()
    }
}
