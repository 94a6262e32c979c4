//! Warnings about the configuration of the server, logged once after the store has connected.

use std::sync::Weak;

use redis::Value;

use super::Shared;
use super::queue::{QueuedCommand, RequestQueue};
use super::upkeep::DEADLINE;
use crate::configuration_warning::configuration_warning;
use crate::error::StoreErrorKind;

const TIME_REFUSED: &str = "redis-time-refused";
const EVICTION: &str = "redis-eviction";
const SHARED_PREFIX: &str = "redis-shared-prefix";

impl Shared {
    /// Logs a warning for each setting that is probably a mistake. A check that fails, for example because
    /// the user lacks a permission for it, warns about nothing.
    ///
    /// Ends before the next check if the store has been dropped, so that its connections are closed.
    pub(super) async fn warn_about_configuration(shared: Weak<Self>) {
        let Some(store) = shared.upgrade() else {
            return;
        };
        store.warn_if_time_is_refused().await;
        drop(store);
        let Some(store) = shared.upgrade() else {
            return;
        };
        let primaries = store.servers.primaries(DEADLINE).await.unwrap_or_default();
        store.warn_if_keys_may_be_evicted(&primaries).await;
        drop(store);
        let Some(store) = shared.upgrade() else {
            return;
        };
        store.warn_if_prefix_is_shared(&primaries).await;
    }

    async fn warn_if_time_is_refused(&self) {
        if self.use_client_clock {
            return;
        }
        let key = self.prefix.of_overrides();
        let mut time = redis::cmd("EVAL");
        time.arg("return redis.call('TIME')").arg(1).arg(&key);
        let time = self.servers.command::<Value>(&key, &time, DEADLINE).await;
        if let Err(error) = time
            && error.kind() == StoreErrorKind::Permanent
        {
            let description = format!(
                "scripts cannot read the server's clock, so no request can be decided: {error}; permit \
                 TIME, or use the clocks of the callers with `RedisStoreBuilder::use_client_clock`"
            );
            configuration_warning(TIME_REFUSED, &description);
        }
    }

    async fn warn_if_keys_may_be_evicted(&self, primaries: &[RequestQueue]) {
        for queue in primaries {
            let mut info = redis::cmd("INFO");
            info.arg("memory");
            let info = queue.enqueue(QueuedCommand::Plain(info), DEADLINE);
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
                    "Redis at {} removes keys when its memory is full (maxmemory-policy {policy}), and \
                     callers whose counters are removed start again at zero; set maxmemory-policy \
                     noeviction",
                    queue.place()
                );
                return configuration_warning(EVICTION, &description);
            }
        }
    }

    async fn warn_if_prefix_is_shared(&self, primaries: &[RequestQueue]) {
        if !self.prefix.is_default() {
            return;
        }
        for queue in primaries {
            let mut scan = redis::cmd("SCAN");
            scan.arg(0)
                .arg("MATCH")
                .arg(self.prefix.pattern_of_application());
            scan.arg("COUNT").arg(100);
            let scan = queue.enqueue(QueuedCommand::Plain(scan), DEADLINE);
            let Ok((_, keys)) = scan.value::<(u64, Vec<String>)>().await else {
                continue;
            };
            let is_foreign = |key: &&String| !self.prefix.is_own_key(key);
            let foreign = keys.iter().filter(is_foreign).count();
            if foreign > 0 {
                // Without the keys: those of other applications may contain secrets.
                let description = format!(
                    "Redis at {} has keys of another application under the default prefix ({foreign} in \
                     one page of SCAN); choose a prefix with `RedisStoreBuilder::prefix`, so that \
                     applications do not share counters",
                    queue.place()
                );
                return configuration_warning(SHARED_PREFIX, &description);
            }
        }
    }
}
