//! Counters in Redis. A batch is decided by one script in one round trip.

mod address;
mod backoff;
mod builder;
mod call;
mod call_codec;
mod cluster;
mod configuration_check;
mod connect;
mod connection;
mod dispatcher;
mod error;
mod key;
mod liveness;
mod multi_slot;
mod overrides;
mod queue;
mod redirect;
mod refunds;
mod reply;
mod request;
mod script;
mod sentinel;
mod servers;
mod setup;
mod slot_queues;
mod slots;
mod source;
mod stack;
#[cfg_attr(not(feature = "redis-tls"), path = "no_tls.rs")]
mod tls;
mod tls_probe;
mod topology;
mod upkeep;
mod url;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;

use self::error::{ErrorCause, RedisStoreError};
use self::key::Prefix;
use self::overrides::OverrideCopy;
use self::refunds::PendingRefunds;
use self::request::{Reading, Request};
use self::script::Verb;
use self::servers::Servers;
use super::epoch::Epoch;
use super::wall::WallTime;
use super::{OverrideStore, Overrides, Store, StoreAdmin, StoreFuture, StoreHealth, TimeSource};
use crate::batch::Batch;
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::usage::Usages;

pub use self::builder::RedisStoreBuilder;

/// Counters in Redis or Valkey, shared by every process that uses the same server and prefix.
///
/// ```no_run
/// use tollgate::{Limiter, RedisStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tollgate::Error> {
/// let store = RedisStore::builder("redis://localhost:6379").prefix("shop").build()?;
/// let limiter = Limiter::builder().quota("100/minute").store(store).build()?;
/// let decision = limiter.check("alice").await?;
/// # Ok(())
/// # }
/// ```
///
/// - **Exact.** One script decides a batch in one round trip, all or nothing, with the arithmetic of
///   [`State`](crate::algorithm::State). The same trace gets the same usages as from memory, to the
///   unit.
/// - **One clock.** Time is the server's. The clocks of the processes do not matter. If the server's clock
///   is set back by more than a second, counters continue at its time; each step back admits at most one
///   additional window. Calendar windows wait.
/// - **One key per subject**, `prefix:v2:{tag}`, with all its counters, and one per sliding log or
///   sliding-bucket counter, `prefix:v2:{tag}:id`. Every key has a time to live that covers its
///   counters; a key that lost it gets it back with the next decision. Keys of version 1 are ignored.
/// - **Overrides.** [Overrides](crate::Override) have a key of their own, whose version every process
///   polls every 400 ms. Changes are read from a log; a process that has missed more than 1,000
///   reads all overrides in pages, over another connection. Until the first load is done, requests
///   wait up to half of the deadline and then follow the failure mode of their rules. At most 100,000:
///   [`max_overrides`](RedisStoreBuilder::max_overrides).
/// - **No repeated calls.** A call whose reply is lost may have been charged. It is not repeated. Only
///   error replies that prove that nothing ran are followed by another call: `NOSCRIPT` and redirects.
/// - **Coalesced.** Up to 64 decisions that wait at the same time share one call. Each is decided on
///   its own, in the order of arrival. See [`coalescing`](RedisStoreBuilder::coalescing).
/// - **Deadline.** A decision takes no longer than the [deadline](RedisStoreBuilder::deadline). A
///   decision that is still in the queue then is not sent, and not charged. After a pause, the
///   server has at most two calls to run.
/// - **Circuit breaker per server.** After three decisions in a row without a reply, and without a
///   connection, calls to this server fail at once with an error that names it. Servers of a cluster
///   have a breaker each: a failing node affects only the subjects in its slots. The breaker closes when
///   the server replies again, to a new connection or to a `PING`; that needs no requests. Error
///   replies, such as `OOM`, cost no time and do not open it.
/// - **Health.** [`Store::health`] is degraded from the first failure until the next success, and
///   names the servers that fail.
/// - **Reconnects** run in the background: at once, then with back-off. The store starts without a
///   server.
///
/// Dropping a future cancels nothing. The decision is made, and charged if it is allowed.
///
/// Works with Redis from 6.2 on and with Valkey, without modules.
///
/// # URLs
///
/// | | |
/// |---|---|
/// | one server | `redis://[user:password@]host[:port][/database]` |
/// | Unix socket | `redis+unix://[user:password@]/path/to/socket[?db=number]` |
/// | Sentinel | `redis+sentinel://[user:password@]host[:port],host…/name[/database]` |
/// | cluster | `redis+cluster://[user:password@]host[:port],host…` |
///
/// `rediss` instead of `redis` is TLS, for all of them but the socket (feature `redis-tls`; see
#[cfg_attr(
    feature = "redis-tls",
    doc = "[`root_certificates`](RedisStoreBuilder::root_certificates))."
)]
#[cfg_attr(not(feature = "redis-tls"), doc = "`root_certificates`).")]
/// `valkey` and `valkeys` mean the same as `redis` and `rediss`, for example
/// `valkey://localhost:6379` or `valkeys+cluster://host,host`. The characters `/ ? # @ : %` in a
/// password are written as `%2F %3F %23 %40 %3A %25`.
///
/// **Sentinel.** The store queries the sentinels for the primary of this name, and once a second whether
/// it has changed. The primary must also report that role itself. User and password are for the primary,
/// and for sentinels that require them.
///
/// **Cluster.** The hosts are queried first. All other nodes are discovered, also after a failover.
/// Nodes are addressed as they announce themselves: these addresses must be reachable, and for TLS in
/// their certificates.
///
/// # Batches over several subjects in a cluster
///
/// Counters of one subject share a key, and one script decides about them, in a cluster as elsewhere.
/// Several subjects have different slots. They are charged one after the other, always in the same
/// order, and refunded if a later one denies or fails. That takes one round trip per subject, and one
/// more for a denial. The consequences:
///
/// - No request is admitted that one of its counters denies.
/// - A request may be denied because of a charge that is about to be refunded, within those round
///   trips.
/// - A process that crashes in between leaves a charge until its window ends. After a missing reply,
///   the parts that are known to be charged are refunded.
/// - A request that one server denies is denied, also if another server does not reply. The counters
///   of that server are then reported as unused.
/// - A later [refund](Store::refund) uses the instant of the first charge. A later part may have been
///   charged a moment after that, if another request came in between. An exact log then does not find
///   the entry, and it counts until it expires.
/// - If the clocks of the servers agree to the second, all parts are charged at the instant of the first
///   one. Otherwise each server uses its own clock, and a refund may not find the entry of an exact log.
///
/// # Requirements of the server
///
/// [`RedisStoreBuilder`](RedisStoreBuilder#requirements-of-the-server) has the permissions of the user, and
/// the settings that are warned about.
///
/// [`clear`](StoreAdmin::clear) and [`len`](StoreAdmin::len) scan all keys of the database, those of
/// other applications included. They are for tests and operators. While slots of a cluster migrate,
/// they may miss a key or count it twice.
pub struct RedisStore {
    shared: Arc<Shared>,
    runtime: Handle,
}

/// Parts that tasks share with the store, and that may outlive it.
#[derive(Debug)]
struct Shared {
    servers: Servers,
    clock: SystemClock,
    prefix: Prefix,
    deadline: Duration,
    use_client_clock: bool,
    /// Wall-clock time of the callers, for `use_client_clock`.
    wall: WallTime,
    overrides: Overrides,
    epoch: Epoch,
    copy: OverrideCopy,
    refunds: PendingRefunds,
}

impl RedisStore {
    /// Starts the settings of a store for the Redis at this URL.
    pub fn builder(url: &str) -> RedisStoreBuilder {
        RedisStoreBuilder::new(url)
    }

    /// Returns whether every server has an open connection.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.shared.servers.is_connected()
    }

    /// Sends a batch, and reads the reply with `read`. It is sent even if the future is dropped.
    /// `unsent` is the result if no check of the batch has a counter.
    fn send<T: Send + 'static>(
        &self,
        verb: Verb,
        batch: &Batch<'_>,
        (now, charged_at): (Timestamp, Timestamp),
        read: impl FnOnce(&Reading, &[u8]) -> Option<T> + Send + 'static,
        unsent: impl FnOnce(&Reading) -> T,
    ) -> StoreFuture<T> {
        let shared = &self.shared;
        // Monotonic clocks of different machines cannot be compared, wall clocks can.
        let now = shared.wall.at(now);
        let clock = shared.use_client_clock.then_some(now);
        let (request, reading) = Request::new(verb, batch, clock, charged_at, &shared.prefix);
        if request.keys.is_empty() {
            return StoreFuture::ready(Ok(unsent(&reading)));
        }
        let refund = matches!(verb, Verb::Refund).then(|| shared.refunds.begin());
        let read = move |reply: &Bytes| read(&reading, reply);
        match &shared.servers {
            Servers::Cluster(cluster) if request.keys.len() > 1 => {
                let due = cluster.now().saturating_add(shared.time_to_decide());
                let reply = multi_slot::decide(cluster, request, due, &shared.refunds);
                let place = Arc::clone(cluster.place());
                // In a task: a dropped future must not leave a part charged.
                self.spawn(async move {
                    let _pending = refund;
                    let read = read(&reply.await?);
                    read.ok_or_else(|| RedisStoreError::new(&place, ErrorCause::UnexpectedReply))
                })
            }
            servers => {
                let reply = servers.decide(request, refund, shared.time_to_decide());
                StoreFuture::pending(async move { Ok(reply.read(read).await?) })
            }
        }
    }

    fn send_usages(&self, verb: Verb, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        let at = self.shared.wall.at(now);
        let unsent = move |reading: &Reading| reading.usages_without_counters(at);
        self.send(
            verb,
            batch,
            (now, Timestamp::EPOCH),
            Reading::usages,
            unsent,
        )
    }

    /// Runs a change of counters or overrides on the store's runtime. The epoch changes before and
    /// after it, also if the future is dropped.
    fn spawn_change<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, RedisStoreError>> + Send + 'static,
    ) -> StoreFuture<T> {
        let change = self.shared.epoch.begin_change();
        self.spawn(async move {
            let done = work.await;
            drop(change);
            done
        })
    }

    /// Runs a future on the store's runtime.
    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, RedisStoreError>> + Send + 'static,
    ) -> StoreFuture<T> {
        let task = self.runtime.spawn(work);
        let no_runtime = RedisStoreError::new(self.shared.servers.place(), ErrorCause::NoRuntime);
        StoreFuture::pending(async move { Ok(task.await.unwrap_or(Err(no_runtime))?) })
    }
}

impl Store for RedisStore {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.send_usages(Verb::Decide, batch, now)
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.send_usages(Verb::Peek, batch, now)
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.send_usages(Verb::Record, batch, now)
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        let instants = (now, charged_at);
        self.send(Verb::Refund, batch, instants, |_, _| Some(()), |_| ())
    }

    /// Waits until every refund has its reply or has failed, and returns no error. A refund has the
    /// deadline of a decision; one that takes back a part of a charge over several slots has five
    /// seconds.
    fn shutdown(&self) -> StoreFuture<()> {
        let refunds = self.shared.refunds.clone();
        StoreFuture::pending(async move {
            refunds.completed().await;
            Ok(())
        })
    }

    /// Degraded while a server of the store fails; the message names each of them.
    fn health(&self) -> StoreHealth {
        let mut failing = self.shared.servers.failing();
        if failing.is_empty() {
            failing.extend(self.shared.failing_load());
        }
        let Some(since) = failing.iter().map(|(since, _)| *since).min() else {
            return StoreHealth::Healthy;
        };
        let since = since.offset_by(self.shared.clock.wall_offset());
        let errors = failing.into_iter().map(|(_, error)| error);
        StoreHealth::degraded(since, &RedisStoreError::into_one(errors))
    }

    fn use_clock(&self, clock: &Arc<dyn Clock>) -> TimeSource {
        self.shared.wall.set(clock);
        TimeSource::Store
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        Some(self)
    }

    fn overrides(&self) -> Option<&dyn OverrideStore> {
        Some(self)
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("address", self.shared.servers.place())
            .field("prefix", &self.shared.prefix)
            .field("connected", &self.is_connected())
            .finish_non_exhaustive()
    }
}
