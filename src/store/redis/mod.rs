//! Counters in Redis: one script, one round trip, one truth for a whole fleet.

mod address;
mod backoff;
mod builder;
mod call;
mod call_codec;
mod cluster;
mod connect;
mod desk;
mod health;
mod key;
mod lanes;
mod link;
mod multi_slot;
mod overrides;
mod reply;
mod request;
mod script;
mod sentinel;
mod servers;
mod slots;
mod source;
mod stack;
#[cfg_attr(not(feature = "redis-tls"), path = "no_tls.rs")]
mod tls;
mod topology;
mod trouble;
mod upkeep;
mod url;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use self::key::Prefix;
use self::lanes::Manner;
use self::overrides::Seen;
use self::request::{Reading, Request};
use self::script::Verb;
use self::servers::Servers;
use self::trouble::Trouble;
use super::epoch::Epoch;
use super::wall::WallTime;
use super::{Override, OverrideStore, Overrides, Store, StoreAdmin, StoreFuture, TimeSource};
use crate::batch::Batch;
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::error::StoreError;
use crate::key::Subject;
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
/// - **Exact.** A batch is decided by one script in one round trip, all or nothing, with the
///   arithmetic of [`State`](crate::algorithm::State): the same trace gets the same answers as
///   from memory, to the unit.
/// - **One clock.** Time is the server's, so the clocks of the fleet do not matter.
/// - **One key per subject**, `prefix:v2:{tag}`, with all its counters, and one per sliding log or
///   sliding-bucket counter, `prefix:v2:{tag}:id`. Every key has a time to live, as long as its counters
///   need it; a key without one gets it back when it is next decided about. Keys of version 1 are
///   ignored: counters start afresh after an update from it. [Overrides](crate::Override) are in a key of their own, which every process
///   looks at twice a second.
/// - **Never twice.** If an answer does not come, nobody knows whether it was charged, and so it is
///   not asked again.
/// - **Together.** Decisions that wait together travel in one call, up to 64 of them, each decided
///   for itself and in the order in which they came. See
///   [`coalescing`](RedisStoreBuilder::coalescing).
/// - **Calm.** An answer takes no longer than the [deadline](RedisStoreBuilder::deadline). Who has
///   waited for so long in the queue is not sent any more, so a server that was silent finds two
///   calls, and no flood of charges for requests that are long over. A lost connection is made anew
///   in the background, at once and then at growing intervals; without one, calls fail at once. So
///   does a store that was built before there was a server.
///
/// Works with Redis from 6.2 on and with Valkey, without modules.
///
/// # Where it is
///
/// | | |
/// |---|---|
/// | one server | `redis://[user:password@]host[:port][/database]` |
/// | a socket | `redis+unix://[user:password@]/path/to/socket[?db=number]` |
/// | sentinels | `redis+sentinel://[user:password@]host[:port],host…/name[/database]` |
/// | a cluster | `redis+cluster://[user:password@]host[:port],host…` |
///
/// `rediss` for `redis` is TLS, for all of them but the socket (feature `redis-tls`; see
#[cfg_attr(
    feature = "redis-tls",
    doc = "[`root_certificates`](RedisStoreBuilder::root_certificates));"
)]
#[cfg_attr(not(feature = "redis-tls"), doc = "`root_certificates`);")]
/// `valkey` does for `redis`. A password that has one of `/ ? # @ : %` in it is written with
/// `%2F %3F %23 %40 %3A %25`.
///
/// **Sentinels** say who the primary of that name is, and are asked once a second whether it still
/// is; it has to say so itself, too. User and password are for the primary, and for sentinels that
/// want them.
///
/// **In a cluster** the hosts are those that are asked first; all others are found, and so is
/// whoever takes over. Servers are known by the addresses that they tell each other: these have to
/// be within reach, and for TLS in their certificates.
///
/// # Batches over several subjects in a cluster
///
/// A subject's counters share a key, and so are decided by one script, in a cluster as elsewhere.
/// Those of several subjects are in different places. They are charged one after the other, always
/// in the same order, and given back if a later one has no room. That takes as many round trips as
/// there are subjects, and one more for a denial. What it means:
///
/// - Nobody is ever admitted who should not be.
/// - Somebody may be denied for a charge that is about to be given back, within those round trips.
/// - Who crashes, or loses the connection, in between leaves a charge behind, until its window ends.
///   An answer that does not come in time gives back what is known to be charged.
/// - Who is denied by one server is denied, also if another does not answer. Of its counters it is
///   then said that nothing is used.
/// - What is [given back](Store::refund) later goes by the instant of the first charge. A later
///   one may have been a moment after that, if somebody else came in between: then an exact log does
///   not find it, and it counts until it leaves by itself.
/// - The clocks of the servers have to agree: a counter goes by the one that is furthest ahead.
///
/// # What the server must do
///
/// It must keep what it is given: under a `maxmemory` with an eviction policy, counters are lost
/// when it is full, and whoever they belonged to starts afresh. A failover may lose what the old
/// primary had not passed on.
///
/// The user needs `+eval +evalsha +time +get +set +setrange +hget +hset +hdel +hgetall +pttl +pexpire
/// +persist +type +del +unlink` on `~prefix:*`, and `+scan` for [`clear`](Store::clear) and
/// [`len`](Store::len); in a cluster `+cluster|slots +asking`, behind sentinels `+role`.
///
/// [`clear`](Store::clear) and [`len`](Store::len) go through all keys of the database, those of
/// others included. They are for tests and for operators. While slots of a cluster move, they may
/// miss a key or meet with it twice.
pub struct RedisStore {
    shared: Arc<Shared>,
    runtime: Handle,
}

/// What calls need that outlive the store.
#[derive(Debug)]
struct Shared {
    servers: Servers,
    clock: SystemClock,
    prefix: Prefix,
    deadline: Duration,
    by_callers_clock: bool,
    /// Wall-clock time of the callers, if it is their clock that counts.
    wall: WallTime,
    overrides: Overrides,
    epoch: Epoch,
    seen: Seen,
}

impl RedisStore {
    /// A store for the Redis at this URL, with settings.
    pub fn builder(url: &str) -> RedisStoreBuilder {
        RedisStoreBuilder::new(url)
    }

    /// Whether there is a connection now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.shared.servers.is_connected()
    }

    /// Asks about a batch; the answer is read by `read`. What is asked is on its way when this
    /// returns, whatever becomes of the answer.
    fn ask<T: Send + 'static>(
        &self,
        verb: Verb,
        batch: &Batch<'_>,
        (now, charged_at): (Timestamp, Timestamp),
        read: impl FnOnce(&Reading, &[u8]) -> Option<T> + Send + 'static,
        unasked: impl FnOnce(&Reading) -> T,
    ) -> StoreFuture<T> {
        // Processes share these counters. Their monotonic time lines have nothing in common, so they
        // go by their wall clocks.
        let now = self.shared.wall.at(now);
        let clock = self.shared.by_callers_clock.then_some(now);
        let prefix = &self.shared.prefix;
        let (request, reading) = Request::new(verb, batch, clock, charged_at, prefix);
        if request.keys.is_empty() {
            return StoreFuture::ready(Ok(unasked(&reading)));
        }
        let due = self.shared.clock.now().saturating_add(self.shared.deadline);
        let place = Arc::clone(self.shared.servers.place());
        let read = move |answer: &[u8]| {
            let read = read(&reading, answer);
            read.ok_or_else(|| Trouble::nonsense(&place))
        };
        match &self.shared.servers {
            Servers::One(desk) => {
                let answer = desk.hand_in(request, (0, Manner::Together), due);
                let no_runtime = Trouble::no_runtime(self.shared.servers.place());
                StoreFuture::pending(async move {
                    match answer.await {
                        Ok(answer) => Ok(read(&answer?)?),
                        Err(_) => Err(no_runtime.into()),
                    }
                })
            }
            Servers::Cluster(cluster) => {
                let answer = multi_slot::ask(cluster, request, due);
                self.spawn(async move { read(&answer.await?) })
            }
        }
    }

    fn ask_verdict(&self, verb: Verb, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        let at = self.shared.wall.at(now);
        let unasked = move |reading: &Reading| reading.without_asking(at);
        self.ask(
            verb,
            batch,
            (now, Timestamp::EPOCH),
            Reading::verdict,
            unasked,
        )
    }

    /// Runs a change of counters or overrides on the store's runtime. The epoch changes before and
    /// after it, also if the future is dropped.
    fn spawn_change<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Trouble>> + Send + 'static,
    ) -> StoreFuture<T> {
        let change = self.shared.epoch.begin_change();
        self.spawn(async move {
            let done = work.await;
            drop(change);
            done
        })
    }

    /// Does something on the store's runtime.
    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Trouble>> + Send + 'static,
    ) -> StoreFuture<T> {
        let task = self.runtime.spawn(work);
        let no_runtime = Trouble::no_runtime(self.shared.servers.place());
        StoreFuture::pending(async move {
            match task.await {
                Ok(done) => done.map_err(StoreError::from),
                Err(_) => Err(no_runtime.into()),
            }
        })
    }
}

impl Store for RedisStore {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.ask_verdict(Verb::Decide, batch, now)
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.ask_verdict(Verb::Peek, batch, now)
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.ask_verdict(Verb::Record, batch, now)
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        self.ask(
            Verb::Refund,
            batch,
            (now, charged_at),
            |_, _| Some(()),
            |_| (),
        )
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

impl StoreAdmin for RedisStore {
    fn reset(&self, batch: &Batch<'_>) -> StoreFuture<()> {
        self.forget(batch)
    }

    fn reset_subject(&self, subject: &Subject<'_>) -> StoreFuture<()> {
        self.forget_subject(subject)
    }

    fn clear(&self) -> StoreFuture<()> {
        self.forget_everything()
    }

    fn len(&self) -> StoreFuture<usize> {
        self.count()
    }

    /// Redis removes expired counters itself, except under the caller's clock.
    fn sweep(&self, now: Timestamp) -> StoreFuture<usize> {
        if self.shared.by_callers_clock {
            self.drop_expired(self.shared.wall.at(now))
        } else {
            StoreFuture::ready(Ok(0))
        }
    }

    fn epoch(&self) -> u64 {
        let resets = self.shared.epoch.current();
        resets.wrapping_add(self.shared.overrides.version())
    }
}

impl OverrideStore for RedisStore {
    fn table(&self) -> &Overrides {
        &self.shared.overrides
    }

    fn set(&self, new: Override) -> StoreFuture<()> {
        self.spawn_change(Arc::clone(&self.shared).set_override(new))
    }

    fn remove(&self, subject: &Subject<'_>, rule: &str) -> StoreFuture<bool> {
        let of = Override::of(*subject, rule);
        self.spawn_change(Arc::clone(&self.shared).remove_override(of))
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
