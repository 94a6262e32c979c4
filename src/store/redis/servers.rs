//! The server, or the servers, that keep the counters.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::{Cmd, FromRedisValue};
use tokio::time::timeout;

use super::cluster::Cluster;
use super::error::RedisStoreError;
use super::queue::{PendingReply, QueueSettings, QueuedCommand, RequestQueue};
use super::refunds::PendingRefund;
use super::request::Request;
use super::script::Script;
use super::sentinel::Sentinels;
use super::source::ConnectionSource;
use super::upkeep::DEADLINE;
use super::url::RedisTarget;
use crate::clock::Timestamp;

/// One server, or a cluster.
#[derive(Clone, Debug)]
pub(super) enum Servers {
    One(Box<SingleServer>),
    Cluster(Arc<Cluster>),
}

/// A server, or the primary that sentinels name.
#[derive(Clone, Debug)]
pub(super) struct SingleServer {
    queue: RequestQueue,
    target: RedisTarget,
    settings: QueueSettings,
}

impl SingleServer {
    fn start(target: RedisTarget, settings: QueueSettings) -> Self {
        Self {
            queue: Self::connect(&target, &settings),
            target,
            settings,
        }
    }

    /// Opens a connection with a queue of its own.
    fn connect(target: &RedisTarget, settings: &QueueSettings) -> RequestQueue {
        let source = match target.clone() {
            RedisTarget::Sentinels {
                sentinels,
                name,
                login,
            } => ConnectionSource::Primary(Sentinels::new(sentinels, name, login)),
            RedisTarget::One(address) => ConnectionSource::server(address),
            RedisTarget::Cluster(mut seeds) => ConnectionSource::server(seeds.swap_remove(0)),
        };
        settings.start(source, None)
    }
}

impl Servers {
    /// Starts to connect.
    pub(super) fn start(target: RedisTarget, settings: QueueSettings) -> Self {
        match target {
            RedisTarget::Cluster(seeds) => Self::Cluster(Cluster::start(seeds, settings)),
            target => Self::One(Box::new(SingleServer::start(target, settings))),
        }
    }

    /// Returns the queue of decisions of the server of a key.
    pub(super) async fn queue(
        &self,
        key: &str,
        within: Duration,
    ) -> Result<RequestQueue, RedisStoreError> {
        match self {
            Self::One(server) => Ok(server.queue.clone()),
            Self::Cluster(cluster) => cluster.queue(key, within).await,
        }
    }

    /// Opens another connection to the server of a key, for long replies. It closes when the queue is
    /// dropped. Its failures do not affect decisions.
    pub(super) async fn dedicated(
        &self,
        key: &str,
        within: Duration,
    ) -> Result<RequestQueue, RedisStoreError> {
        match self {
            Self::One(server) => Ok(SingleServer::connect(&server.target, &server.settings)),
            Self::Cluster(cluster) => cluster.dedicated(key, within).await,
        }
    }

    /// Addresses, for error messages.
    pub(super) fn place(&self) -> &Arc<str> {
        match self {
            Self::One(server) => server.queue.place(),
            Self::Cluster(cluster) => cluster.place(),
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        match self {
            Self::One(server) => server.queue.is_connected(),
            Self::Cluster(cluster) => cluster.is_connected(),
        }
    }

    /// Returns since when servers fail, and why; one entry per server.
    pub(super) fn failing(&self) -> Vec<(Timestamp, RedisStoreError)> {
        match self {
            Self::One(server) => server.queue.failing().into_iter().collect(),
            Self::Cluster(cluster) => cluster.failing(),
        }
    }

    /// Waits until the first attempt to connect has ended, or for this time. Returns the failures.
    pub(super) async fn first_attempt(&self, within: Duration) -> Vec<RedisStoreError> {
        let attempt = async {
            let queues = self.primaries(within).await?;
            join_all(queues.iter().map(RequestQueue::first_attempt)).await;
            Ok(())
        };
        let mut errors = Vec::new();
        if let Ok(Err(error)) = timeout(within, attempt).await {
            errors.push(error);
        }
        errors.extend(self.failing().into_iter().map(|(_, error)| error));
        errors
    }

    /// Sends a decision to the server of its first key. The other keys must have the same slot.
    pub(super) fn decide(
        &self,
        request: Request,
        refund: Option<PendingRefund>,
        within: Duration,
    ) -> PendingReply {
        match self {
            Self::One(server) => server.queue.decide(request, refund, within),
            Self::Cluster(cluster) => cluster.decide(request, refund, cluster.due(within)),
        }
    }

    /// Runs a script on the server of its first key. The other keys must have the same slot.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        script: &'static Script,
        keys: &[String],
        arguments: &[&[u8]],
    ) -> Result<T, RedisStoreError> {
        let key = keys.first().map_or("", String::as_str);
        let command = QueuedCommand::script(script, keys, arguments);
        self.enqueue(key, command, DEADLINE).value().await
    }

    /// Runs a command on the server of a key.
    pub(super) async fn command<T: FromRedisValue>(
        &self,
        key: &str,
        command: &Cmd,
        within: Duration,
    ) -> Result<T, RedisStoreError> {
        let reply = self.enqueue(key, QueuedCommand::Plain(command.clone()), within);
        reply.value().await
    }

    /// Queues a command at the server of a key.
    pub(super) fn enqueue(
        &self,
        key: &str,
        command: QueuedCommand,
        within: Duration,
    ) -> PendingReply {
        match self {
            Self::One(server) => server.queue.enqueue(command, within),
            Self::Cluster(cluster) => cluster.enqueue(key, command, within),
        }
    }

    /// Returns the queues of all servers that have keys.
    pub(super) async fn primaries(
        &self,
        within: Duration,
    ) -> Result<Vec<RequestQueue>, RedisStoreError> {
        match self {
            Self::One(server) => Ok(vec![server.queue.clone()]),
            Self::Cluster(cluster) => cluster.primaries(within).await,
        }
    }

    /// Number of keys that one call may have: in a cluster each subject has a slot of its own.
    pub(super) const fn keys_per_call(&self) -> usize {
        match self {
            Self::One(_) => usize::MAX,
            Self::Cluster(_) => 1,
        }
    }
}
