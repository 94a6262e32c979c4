//! Operations of operators on many keys: reset, clear, count, sweep.

use std::collections::HashMap;
use std::time::Duration;

use super::RedisStore;
use super::error::RedisStoreError;
use super::queue::{QueuedCommand, RequestQueue};
use super::script;
use crate::batch::Batch;
use crate::clock::Timestamp;
use crate::key::Subject;
use crate::store::{StoreAdmin, StoreFuture};

/// Deadline of operations that no request waits for. A page of keys takes longer than a decision.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);
/// Keys per page of a scan.
const PAGE: usize = 500;

impl StoreAdmin for RedisStore {
    fn reset(&self, batch: &Batch<'_>) -> StoreFuture<()> {
        let mut ids_of: HashMap<String, Vec<[u8; 5]>> = HashMap::new();
        for check in batch.checks() {
            let ids = ids_of
                .entry(self.shared.prefix.key(check.subject()))
                .or_default();
            ids.push(check.counter().short_id());
        }
        let servers = self.shared.servers.clone();
        self.spawn_change(async move {
            for (key, ids) in ids_of {
                let ids = ids.iter().map(<[u8; 5]>::as_slice);
                let arguments: Vec<&[u8]> = [b"remove".as_slice(), b"0"]
                    .into_iter()
                    .chain(ids)
                    .collect();
                let _: u64 = servers.run(script::upkeep(), &[key], &arguments).await?;
            }
            Ok(())
        })
    }

    fn reset_subject(&self, subject: &Subject<'_>) -> StoreFuture<()> {
        let (servers, key) = (self.shared.servers.clone(), self.shared.prefix.key(subject));
        self.spawn_change(async move {
            let _: u64 = servers
                .run(script::upkeep(), &[key], &[b"remove_all", b"0"])
                .await?;
            Ok(())
        })
    }

    fn clear(&self) -> StoreFuture<()> {
        let servers = self.shared.servers.clone();
        let pattern = self.shared.prefix.pattern_with_logs();
        self.spawn_change(async move {
            for queue in servers.primaries(DEADLINE).await? {
                let mut pages = Pages::new(&pattern);
                while let Some(keys) = pages.next(&queue).await? {
                    for keys in keys.chunks(servers.keys_per_call()) {
                        let mut unlink = redis::cmd("UNLINK");
                        let unlink = unlink.arg(keys);
                        let _: u64 = servers.command(&keys[0], unlink, DEADLINE).await?;
                    }
                }
            }
            Ok(())
        })
    }

    fn len(&self) -> StoreFuture<usize> {
        self.sum_over_keys("count", Timestamp::EPOCH)
    }

    /// Redis removes expired counters itself, except under the caller's clock.
    fn sweep(&self, now: Timestamp) -> StoreFuture<usize> {
        if self.shared.use_client_clock {
            self.sum_over_keys("sweep", self.shared.wall.at(now))
        } else {
            StoreFuture::ready(Ok(0))
        }
    }

    fn epoch(&self) -> u64 {
        let resets = self.shared.epoch.current();
        resets.wrapping_add(self.shared.overrides.version())
    }
}

impl RedisStore {
    /// Runs the script for all keys, and returns the sum of its replies.
    fn sum_over_keys(&self, verb: &'static str, now: Timestamp) -> StoreFuture<usize> {
        let (servers, pattern) = (self.shared.servers.clone(), self.shared.prefix.pattern());
        let now = now.as_micros().to_string();
        self.spawn(async move {
            let mut sum = 0_u64;
            for queue in servers.primaries(DEADLINE).await? {
                let mut pages = Pages::new(&pattern);
                while let Some(keys) = pages.next(&queue).await? {
                    for keys in keys.chunks(servers.keys_per_call()) {
                        let arguments = [verb.as_bytes(), now.as_bytes()];
                        sum += servers
                            .run::<u64>(script::upkeep(), keys, &arguments)
                            .await?;
                    }
                }
            }
            Ok(usize::try_from(sum).unwrap_or(usize::MAX))
        })
    }
}

/// Keys of a pattern, page by page.
///
/// A scan may return a key twice while the server resizes its tables. Removing a key twice does no
/// harm; a count may include it twice, as the documentation of the store states.
struct Pages<'a> {
    pattern: &'a str,
    /// `None` after the last page.
    cursor: Option<u64>,
}

impl<'a> Pages<'a> {
    fn new(pattern: &'a str) -> Self {
        Self {
            pattern,
            cursor: Some(0),
        }
    }

    /// Returns the next page, which has at least one key; `None` after the last one.
    async fn next(&mut self, queue: &RequestQueue) -> Result<Option<Vec<String>>, RedisStoreError> {
        while let Some(cursor) = self.cursor {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(self.pattern);
            scan.arg("COUNT").arg(PAGE);
            let reply = queue.enqueue(QueuedCommand::Plain(scan), DEADLINE);
            let (next, keys): (u64, Vec<String>) = reply.value().await?;
            self.cursor = (next != 0).then_some(next);
            if !keys.is_empty() {
                return Ok(Some(keys));
            }
        }
        Ok(None)
    }
}
