//! Keeps the copy of the overrides up to date.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::{Cmd, FromRedisValue};
use tokio::time::sleep;

use super::codec::{OverrideChange, read_lines};
use super::{LOG_LEN, LoadState};
use crate::clock::Clock as _;
use crate::store::Override;
use crate::store::redis::Shared;
use crate::store::redis::error::RedisStoreError;
use crate::store::redis::queue::{QueuedCommand, RequestQueue};
use crate::store::redis::upkeep::DEADLINE;

/// Interval of polls. A change is known to all processes within a second.
const POLL_INTERVAL: Duration = Duration::from_millis(400);
/// Interval of attempts until the first load is done, because decisions wait for it.
const FIRST_INTERVAL: Duration = Duration::from_millis(50);
/// Fields per page of a load. Takes the server less than a millisecond.
const PAGE: usize = 500;
/// Changes that are read over the connection of decisions. More are read over another one.
const FEW_CHANGES: u64 = 16;
/// Loads that are started over because the log did not reach back to their beginning.
const ATTEMPTS: usize = 3;

const HEAD: &str = "head";
const LOG: &str = "log:";

/// Version of the copy, and whether this process has changed it since.
#[derive(Debug, Default)]
pub(super) struct CopyState {
    version: CopyVersion,
    /// Set by a change that was made in Redis and in the copy. If Redis does not have it at the next
    /// poll, a failover has lost it, and the copy is outdated.
    pub(super) has_own_changes: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum CopyVersion {
    #[default]
    Unknown,
    /// Redis has no overrides.
    Empty,
    Number(Version),
}

#[derive(Debug, PartialEq, Eq)]
struct Version {
    /// Changes if the hash was deleted and created again.
    id: String,
    number: u64,
}

/// Beginning of the field `head`.
struct Head {
    version: Version,
    count: usize,
}

impl Head {
    /// `None` if the text is no head. The first change deletes such a hash.
    fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        Some(Self {
            version: Version {
                id: words.next()?.to_owned(),
                number: words.next()?.parse().ok()?,
            },
            count: words.next()?.parse().ok()?,
        })
    }
}

impl Shared {
    /// Polls until the store is dropped.
    pub(in crate::store::redis) async fn follow_overrides(shared: Weak<Self>) {
        while let Some(shared) = shared.upgrade() {
            let result = shared.update_copy().await;
            let is_done = shared.report_load(result);
            drop(shared);
            sleep(if is_done {
                POLL_INTERVAL
            } else {
                FIRST_INTERVAL
            })
            .await;
        }
    }

    /// Publishes the result of an attempt. Returns whether one has succeeded. After the first success,
    /// the last copy stays valid while Redis does not reply.
    fn report_load(&self, result: Result<(), RedisStoreError>) -> bool {
        let load = &self.copy.load;
        // A clone: a borrowed value would block its replacement.
        let before = load.borrow().clone();
        let is_loaded = matches!(before, LoadState::Loaded | LoadState::Outdated(..));
        let Err(error) = result else {
            if !is_loaded {
                self.overrides.finish_loading();
            }
            if !matches!(before, LoadState::Loaded) {
                load.send_replace(LoadState::Loaded);
            }
            return true;
        };
        let since = match before {
            LoadState::Failing(since, _) | LoadState::Outdated(since, _) => since,
            LoadState::Loading | LoadState::Loaded => self.clock.now(),
        };
        load.send_replace(if is_loaded {
            LoadState::Outdated(since, error)
        } else {
            LoadState::Failing(since, error)
        });
        is_loaded
    }

    /// Copies what has changed since the last time.
    async fn update_copy(self: &Arc<Self>) -> Result<(), RedisStoreError> {
        let mut copy = self.copy.state.lock().await;
        let key = self.prefix.of_overrides();
        let mut head = redis::cmd("HGET");
        let head = head.arg(&key).arg(HEAD);
        let head: Option<String> = self.servers.command(&key, head, DEADLINE).await?;
        let Some(head) = head.as_deref().and_then(Head::read) else {
            if copy.has_own_changes || copy.version != CopyVersion::Empty {
                self.change_table(|shared| shared.overrides.replace([]))
                    .await;
                *copy = CopyState {
                    version: CopyVersion::Empty,
                    has_own_changes: false,
                };
            }
            return Ok(());
        };
        let missing = match &copy.version {
            CopyVersion::Number(known) if *known == head.version => {
                if !copy.has_own_changes {
                    return Ok(());
                }
                None
            }
            CopyVersion::Number(known) => changes_since(known, &head.version),
            CopyVersion::Unknown | CopyVersion::Empty => None,
        };
        let reader = |queue| OverrideReader {
            queue,
            key: key.clone(),
        };
        let changes = match missing {
            Some(numbers) => {
                let is_small = numbers.end() - numbers.start() < FEW_CHANGES;
                let queue = if is_small {
                    self.servers.queue(&key, DEADLINE).await?
                } else {
                    self.servers.dedicated(&key, DEADLINE).await?
                };
                reader(queue).changes(numbers).await?
            }
            None => None,
        };
        let version = if let Some(changes) = changes {
            self.change_table(move |shared| {
                let changes = changes.into_iter().map(|change| (change.of, change.all));
                shared.overrides.apply(changes);
            })
            .await;
            head.version
        } else {
            let queue = self.servers.dedicated(&key, DEADLINE).await?;
            let (all, version) = reader(queue).load(head, self.copy.max).await?;
            self.change_table(move |shared| shared.overrides.replace(all))
                .await;
            version
        };
        *copy = CopyState {
            version: CopyVersion::Number(version),
            has_own_changes: false,
        };
        Ok(())
    }

    /// Changes the table on a thread for blocking work: with 100,000 overrides it takes some
    /// milliseconds.
    async fn change_table(self: &Arc<Self>, change: impl FnOnce(&Self) + Send + 'static) {
        let shared = Arc::clone(self);
        let change = tokio::task::spawn_blocking(move || change(&shared));
        // Fails only if the runtime ends.
        let _ = change.await;
    }
}

/// Returns the numbers of the changes after `known`, if the log may have all of them.
fn changes_since(known: &Version, current: &Version) -> Option<std::ops::RangeInclusive<u64>> {
    let missing = current.number.checked_sub(known.number)?;
    let has_all = known.id == current.id && missing <= LOG_LEN;
    has_all.then_some(known.number + 1..=current.number)
}

/// Reads overrides.
struct OverrideReader {
    queue: RequestQueue,
    key: String,
}

impl OverrideReader {
    async fn run<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisStoreError> {
        let command = QueuedCommand::Plain(command.clone());
        self.queue.enqueue(command, DEADLINE).value().await
    }

    /// Reads changes from the log. `None` if it does not have all of them.
    async fn changes(
        &self,
        numbers: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<Vec<OverrideChange>>, RedisStoreError> {
        let mut get = redis::cmd("HMGET");
        get.arg(&self.key);
        for number in numbers {
            get.arg(format!("{LOG}{number}"));
        }
        let texts: Vec<Option<String>> = self.run(&get).await?;
        let changes = texts
            .iter()
            .map(|text| OverrideChange::read(text.as_deref()?));
        Ok(changes.collect())
    }

    /// Reads all overrides in pages. Changes that are made meanwhile are taken from the log.
    async fn load(
        &self,
        mut head: Head,
        max: usize,
    ) -> Result<(Vec<Override>, Version), RedisStoreError> {
        for _ in 0..ATTEMPTS {
            if head.count > max {
                let place = self.queue.place();
                return Err(RedisStoreError::too_many_overrides(place, max));
            }
            let mut all = self.pages().await?;
            let mut get = redis::cmd("HGET");
            let text: Option<String> = self.run(get.arg(&self.key).arg(HEAD)).await?;
            let Some(after) = text.as_deref().and_then(Head::read) else {
                break;
            };
            let changes = match changes_since(&head.version, &after.version) {
                Some(numbers) if numbers.is_empty() => Some(Vec::new()),
                Some(numbers) => self.changes(numbers).await?,
                None => None,
            };
            if let Some(changes) = changes {
                let later = changes.into_iter().map(|change| {
                    let field = super::Prefix::hash_of(&change.of.subject(), change.of.rule());
                    (field, change.all)
                });
                all.extend(later);
                let all = all.into_values().flatten().collect();
                return Ok((all, after.version));
            }
            head = after;
        }
        Err(RedisStoreError::overrides_not_loaded(self.queue.place()))
    }

    /// Reads all fields. A field that changes meanwhile may be read before or after the change.
    async fn pages(&self) -> Result<HashMap<String, Vec<Override>>, RedisStoreError> {
        let (mut all, mut cursor) = (HashMap::new(), 0_u64);
        loop {
            let mut scan = redis::cmd("HSCAN");
            scan.arg(&self.key).arg(cursor).arg("COUNT").arg(PAGE);
            let (next, page): (u64, Vec<(String, String)>) = self.run(&scan).await?;
            let fields = page.into_iter();
            let fields = fields.filter(|(name, _)| name != HEAD && !name.starts_with(LOG));
            all.extend(fields.map(|(name, text)| (name, read_lines(&text).collect())));
            if next == 0 {
                return Ok(all);
            }
            cursor = next;
        }
    }
}
