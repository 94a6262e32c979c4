//! Whoever keeps the counters: one server, or all of a cluster.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, FromRedisValue};

use super::call::{self, Question, ScriptCall};
use super::cluster::Cluster;
use super::connection::ConnectionHandle;
use super::dispatcher::{RequestQueue, Setup};
use super::error::RedisStoreError;
use super::sentinel::Sentinels;
use super::slot_queues::SendMode;
use super::source::Source;
use super::url::Target;

/// Where calls go.
#[derive(Clone, Debug)]
pub(super) enum Servers {
    One(RequestQueue),
    Cluster(Arc<Cluster>),
}

impl Servers {
    /// Starts to connect.
    pub(super) fn start(target: Target, setup: Setup) -> Self {
        match target {
            Target::One(address) => Self::One(setup.desk(Source::Server(address))),
            Target::Sentinels {
                sentinels,
                name,
                login,
            } => {
                let sentinels = Sentinels::new(sentinels, name, login);
                Self::One(setup.desk(Source::Primary(sentinels)))
            }
            Target::Cluster(seeds) => Self::Cluster(Cluster::start(seeds, setup)),
        }
    }

    /// How they are called when there is something to tell.
    pub(super) fn place(&self) -> &Arc<str> {
        match self {
            Self::One(desk) => desk.link().place(),
            Self::Cluster(cluster) => cluster.place(),
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        match self {
            Self::One(desk) => desk.link().is_open(),
            Self::Cluster(cluster) => cluster.is_connected(),
        }
    }

    /// Runs a script, where its first key is. All others must be there, too.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        call: ScriptCall<'_>,
        deadline: Duration,
    ) -> Result<T, RedisStoreError> {
        let key = call.keys.first().map_or("", String::as_str);
        self.ask(key, Question::Script(call), deadline).await
    }

    /// Runs a command about a key.
    pub(super) async fn command<T: FromRedisValue>(
        &self,
        key: &str,
        command: &Cmd,
        deadline: Duration,
    ) -> Result<T, RedisStoreError> {
        self.ask(key, Question::Command(command), deadline).await
    }

    async fn ask<T: FromRedisValue>(
        &self,
        key: &str,
        question: Question<'_>,
        deadline: Duration,
    ) -> Result<T, RedisStoreError> {
        let answer = match self {
            Self::One(desk) => {
                let link = desk.link();
                link.ask(question, deadline, SendMode::Together).await?
            }
            Self::Cluster(cluster) => cluster.ask_about(key, question, deadline).await?,
        };
        call::read(answer, self.place())
    }

    /// The connections to all who keep keys.
    pub(super) async fn primaries(
        &self,
        within: Duration,
    ) -> Result<Vec<ConnectionHandle>, RedisStoreError> {
        match self {
            Self::One(desk) => Ok(vec![desk.link().clone()]),
            Self::Cluster(cluster) => cluster.primaries(within).await,
        }
    }

    /// How many keys of whomever one call may be about: in a cluster each has its own slot.
    pub(super) const fn keys_per_call(&self) -> usize {
        match self {
            Self::One(_) => usize::MAX,
            Self::Cluster(_) => 1,
        }
    }
}
