//! Keeps the copy of the overrides up to date.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::{Cmd, FromRedisValue};
use tokio::time::sleep;

use super::codec::{OverrideChange, read_lines};
use super::{LOG_LEN, LoadState};
use crate::clock::Clock as _;
use crate::store::Override;
use crate::store::redis::Shared;
use crate::store::redis::error::{ErrorCause, RedisStoreError};
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

/// Version of the copy, and how this process has changed it since.
#[derive(Debug, Default)]
pub(super) struct CopyState {
    version: CopyVersion,
    /// Ids of changes that were made in Redis and in the copy since `version`. If the log lacks one of
    /// them at the next poll, a failover has lost it, and the copy is outdated.
    own_changes: Vec<String>,
}

impl CopyState {
    /// Returns the state of a copy without changes by this process.
    fn at(version: CopyVersion) -> Self {
        Self {
            version,
            own_changes: Vec::new(),
        }
    }

    /// Adds a change by this process. Up to [`LOG_LEN`] are kept, also if polls fail. The log has no
    /// room for so many after the known version, so that all overrides are then loaded.
    pub(super) fn add_own_change(&mut self, id: String) {
        if (self.own_changes.len() as u64) < LOG_LEN {
            self.own_changes.push(id);
        }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
enum CopyVersion {
    #[default]
    Unknown,
    /// Redis has no overrides.
    Empty,
    Number(Version),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    /// Random id of the last change. Numbers are not unique: a failover may lose a change, and another
    /// one gets its number.
    id: String,
    number: u64,
}

/// Beginning of the field `head`.
struct Head {
    version: Version,
    count: usize,
}

impl Head {
    /// `None` if the text is no head: a later version of this crate has written it.
    fn read(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let [id, number, count, _, _, _] = words[..] else {
            return None;
        };
        Some(Self {
            version: Version {
                id: id.to_owned(),
                number: number.parse().ok()?,
            },
            count: count.parse().ok()?,
        })
    }

    fn check_count(&self, max: usize, place: &Arc<str>) -> Result<(), RedisStoreError> {
        if self.count > max {
            return Err(RedisStoreError::new(
                place,
                ErrorCause::TooManyOverrides(max),
            ));
        }
        Ok(())
    }

    /// Reads the field of a hash; `None` if there is none.
    fn read_field(text: Option<&str>, place: &Arc<str>) -> Result<Option<Self>, RedisStoreError> {
        let read = |text| {
            Self::read(text)
                .ok_or_else(|| RedisStoreError::new(place, ErrorCause::UnreadableOverrides))
        };
        text.map(read).transpose()
    }
}

impl Shared {
    /// Polls until the store is dropped. After the first success, the configuration of the server is checked.
    pub(in crate::store::redis) async fn follow_overrides(shared: Weak<Self>) {
        let mut is_checked = false;
        while let Some(shared) = shared.upgrade() {
            let result = shared.update_copy().await;
            let is_done = shared.report_load(result);
            if is_done && !std::mem::replace(&mut is_checked, true) {
                // Weak: a check waits for Redis, and must not keep a dropped store alive.
                tokio::spawn(Self::warn_about_configuration(Arc::downgrade(&shared)));
            }
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
                let _ = self.copy.loaded_at.set(self.clock.now());
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
        let Some(head) = Head::read_field(head.as_deref(), self.servers.place())? else {
            if !copy.own_changes.is_empty() || copy.version != CopyVersion::Empty {
                self.change_table(|shared| shared.overrides.replace([]))
                    .await;
                *copy = CopyState::at(CopyVersion::Empty);
            }
            return Ok(());
        };
        let (known, own) = match &copy.version {
            CopyVersion::Number(known) => (Some(known), &*copy.own_changes),
            CopyVersion::Unknown | CopyVersion::Empty => (None, &[][..]),
        };
        if known == Some(&head.version) && own.is_empty() {
            return Ok(());
        }
        let reader = |queue| OverrideReader {
            queue,
            key: key.clone(),
        };
        let is_near = |known: &&Version| head.version.number.abs_diff(known.number) < FEW_CHANGES;
        let mut changes = None;
        if let Some(known) = known.filter(is_near) {
            let reader = reader(self.servers.queue(&key, DEADLINE).await?);
            changes = reader.changes(known, &head.version, own).await?;
        }
        let mut all = Vec::new();
        let mut version = head.version.clone();
        if changes.is_none() {
            // Before a connection is opened, at each poll.
            head.check_count(self.copy.max, self.servers.place())?;
            let reader = reader(self.servers.dedicated(&key, DEADLINE).await?);
            if let Some(known) = known {
                changes = reader.changes(known, &head.version, own).await?;
            }
            if changes.is_none() {
                (all, version) = reader.load(head, self.copy.max).await?;
            }
        }
        self.change_table(move |shared| match changes {
            Some(changes) => {
                let changes = changes.into_iter().map(|change| (change.of, change.all));
                shared.overrides.apply(changes);
            }
            None => shared.overrides.replace(all),
        })
        .await;
        *copy = CopyState::at(CopyVersion::Number(version));
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

    /// Reads the changes between two versions from the log. `None` if it does not have all of them, or
    /// if `known` or one of the changes with these ids was lost.
    async fn changes(
        &self,
        known: &Version,
        current: &Version,
        own: &[String],
    ) -> Result<Option<Vec<OverrideChange>>, RedisStoreError> {
        if known == current {
            return Ok(own.is_empty().then(Vec::new));
        }
        // The log also has the change `known`. It shows whether the copy is a part of this history.
        let missing = current.number.checked_sub(known.number);
        if !missing.is_some_and(|missing| (1..LOG_LEN).contains(&missing)) {
            return Ok(None);
        }
        let mut get = redis::cmd("HMGET");
        get.arg(&self.key);
        for number in known.number..=current.number {
            get.arg(format!("{LOG}{number}"));
        }
        let texts: Vec<Option<String>> = self.run(&get).await?;
        let changes = texts
            .iter()
            .map(|text| OverrideChange::read(text.as_deref()?));
        let Some(mut changes) = changes.collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let ids = (changes.first(), changes.last());
        let ids = (ids.0.map(|first| &first.id), ids.1.map(|last| &last.id));
        if ids != (Some(&known.id), Some(&current.id)) {
            return Ok(None);
        }
        changes.remove(0);
        let ids: HashSet<&str> = changes.iter().map(|change| &*change.id).collect();
        let has_own = own.iter().all(|id| ids.contains(&**id));
        Ok(has_own.then_some(changes))
    }

    /// Reads all overrides in pages. Changes that are made meanwhile are taken from the log.
    async fn load(
        &self,
        mut head: Head,
        max: usize,
    ) -> Result<(Vec<Override>, Version), RedisStoreError> {
        let place = self.queue.place();
        for _ in 0..ATTEMPTS {
            head.check_count(max, place)?;
            let mut all = self.pages().await?;
            let mut get = redis::cmd("HGET");
            let text: Option<String> = self.run(get.arg(&self.key).arg(HEAD)).await?;
            let Some(after) = Head::read_field(text.as_deref(), place)? else {
                break;
            };
            if let Some(changes) = self.changes(&head.version, &after.version, &[]).await? {
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
        Err(RedisStoreError::new(place, ErrorCause::OverridesNotLoaded))
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
