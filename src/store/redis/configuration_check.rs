//! Errors and warnings about the configuration of the server and its user.

use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::{Cmd, Value};

use super::Shared;
use super::error::RedisStoreError;
use super::key::Prefix;
use super::queue::{PendingReply, QueuedCommand, RequestQueue};
use super::script;
use super::upkeep::DEADLINE;
use crate::clock::Clock as _;
use crate::configuration_warning::configuration_warning;
use crate::error::StoreErrorKind;

const TIME_REFUSED: &str = "redis-time-refused";
const EVICTION: &str = "redis-eviction";
const SHARED_PREFIX: &str = "redis-shared-prefix";

/// How long a store is verified.
const VERIFICATION: Duration = Duration::from_secs(2);

/// Reply of a primary, with the address of the primary.
type PrimaryReply = (Arc<str>, PendingReply);

impl Shared {
    /// Returns an error that only a change of the configuration ends. Waits up to [`VERIFICATION`] for the
    /// result of the first attempt to connect, and for the reply to the commands that every decision needs.
    pub(super) async fn configuration_error(&self) -> Option<RedisStoreError> {
        let is_permanent = |error: &RedisStoreError| error.kind() == StoreErrorKind::Permanent;
        let due = self.clock.now().saturating_add(VERIFICATION);
        let failing = self.servers.first_attempt(VERIFICATION).await;
        if !failing.is_empty() {
            return failing.into_iter().find(is_permanent);
        }
        let left = due.duration_since(self.clock.now());
        let key = self.prefix.of_verification();
        let clock = if self.use_client_clock {
            "client"
        } else {
            "server"
        };
        let keys = [key.clone()];
        let command = QueuedCommand::script(script::verification(), &keys, &[clock.as_bytes()]);
        let reply = self.servers.enqueue(&key, command, left).value::<Value>();
        reply.await.err().filter(is_permanent)
    }

    /// Logs a warning for each setting that is probably a mistake. A check that fails, for example because
    /// the user lacks a permission for it, warns about nothing.
    ///
    /// Holds the store only until the commands of a check are queued: a check may wait five seconds for
    /// its replies, and a dropped store must end before. Ends before the next check if it has been dropped.
    pub(super) async fn warn_about_configuration(shared: Weak<Self>) {
        let Some(time) = shared.upgrade().map(|store| store.read_time()) else {
            return;
        };
        if let Some(time) = time {
            warn_if_time_is_refused(time).await;
        }
        let mut info = redis::cmd("INFO");
        info.arg("memory");
        let Some(info) = Self::send_to_primaries(&shared, &info).await else {
            return;
        };
        warn_if_keys_may_be_evicted(info).await;
        let prefix = shared.upgrade().map(|store| store.prefix.clone());
        let Some(prefix) = prefix.filter(Prefix::is_default) else {
            return;
        };
        let mut scan = redis::cmd("SCAN");
        scan.arg(0)
            .arg("MATCH")
            .arg(prefix.pattern_of_application());
        scan.arg("COUNT").arg(100);
        if let Some(pages) = Self::send_to_primaries(&shared, &scan).await {
            warn_if_prefix_is_shared(&prefix, pages).await;
        }
    }

    /// Sends a script that reads the server's clock. `None` if the store does not use that clock.
    fn read_time(&self) -> Option<PendingReply> {
        if self.use_client_clock {
            return None;
        }
        let key = self.prefix.of_overrides();
        let mut time = redis::cmd("EVAL");
        time.arg("return redis.call('TIME')").arg(1).arg(&key);
        let time = QueuedCommand::Plain(time);
        Some(self.servers.enqueue(&key, time, DEADLINE))
    }

    /// Sends a command to each primary. `None` if the store has been dropped.
    async fn send_to_primaries(shared: &Weak<Self>, command: &Cmd) -> Option<Vec<PrimaryReply>> {
        let store = shared.upgrade()?;
        // Does not wait: the overrides have been loaded, and so has the slot map of a cluster.
        let primaries = store.servers.primaries(DEADLINE).await.unwrap_or_default();
        let send = |queue: &RequestQueue| {
            let reply = queue.enqueue(QueuedCommand::Plain(command.clone()), DEADLINE);
            (Arc::clone(queue.place()), reply)
        };
        Some(primaries.iter().map(send).collect())
    }
}

async fn warn_if_time_is_refused(time: PendingReply) {
    if let Err(error) = time.value::<Value>().await
        && error.kind() == StoreErrorKind::Permanent
    {
        let description = format!(
            "scripts cannot read the server's clock, so no request can be decided: {error}; permit TIME, or \
             use the clocks of the callers with `RedisStoreBuilder::use_client_clock`"
        );
        configuration_warning(TIME_REFUSED, &description);
    }
}

async fn warn_if_keys_may_be_evicted(replies: Vec<PrimaryReply>) {
    for (place, info) in replies {
        let Ok(info) = info.value::<String>().await else {
            continue;
        };
        let value = |name: &str| {
            let mut lines = info.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        };
        let policy = value("maxmemory_policy").unwrap_or("noeviction");
        if policy != "noeviction" && value("maxmemory").is_some_and(|max| max != "0") {
            let description = format!(
                "Redis at {place} removes keys when its memory is full (maxmemory-policy {policy}), and \
                 callers whose counters are removed start again at zero; set maxmemory-policy noeviction"
            );
            return configuration_warning(EVICTION, &description);
        }
    }
}

async fn warn_if_prefix_is_shared(prefix: &Prefix, replies: Vec<PrimaryReply>) {
    for (place, page) in replies {
        // Bytes: a key of another application may not be UTF-8. Keys of this crate are ASCII.
        let Ok((_, keys)) = page.value::<(u64, Vec<Vec<u8>>)>().await else {
            continue;
        };
        let is_own = |key: &[u8]| std::str::from_utf8(key).is_ok_and(|key| prefix.is_own_key(key));
        let foreign = keys.iter().filter(|key| !is_own(key)).count();
        if foreign > 0 {
            // Without the keys: those of other applications may contain secrets.
            let description = format!(
                "Redis at {place} has keys of another application under the default prefix ({foreign} in one \
                 page of SCAN); choose a prefix with `RedisStoreBuilder::prefix`, so that applications do \
                 not share counters"
            );
            return configuration_warning(SHARED_PREFIX, &description);
        }
    }
}
