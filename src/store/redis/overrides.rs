//! Overrides in Redis: one hash for all of them, with a log of changes, and a copy in every process.
//!
//! Every process polls the version of the hash. It reads the changes since its own version from the
//! log. If the log no longer has them, it reads the whole hash in pages, over a connection of its own:
//! no decision waits for them.

mod codec;
mod load;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use self::codec::written;
use self::load::CopyState;
use super::error::{ErrorCause, RedisStoreError};
use super::key::Prefix;
use super::script;
use super::{RedisStore, Shared};
use crate::clock::{Clock as _, Timestamp};
use crate::error::StoreErrorKind;
use crate::key::Subject;
use crate::store::{Override, OverrideStore, Overrides, StoreFuture};

/// Number of changes that the log keeps. A process that has missed more reads all overrides.
const LOG_LEN: u64 = 1_000;

// Replies of the script that are no number of removed overrides.
const TOO_MANY: i64 = -1;
const UNREADABLE_HEAD: i64 = -2;

/// With the clients' clocks, an override is removed so many microseconds after its end.
const CLIENT_CLOCK_SLACK: u64 = 60_000_000;

/// State of the copy.
#[derive(Clone, Debug)]
enum LoadState {
    /// The first load runs.
    Loading,
    /// Attempts of the first load fail since this time.
    Failing(Timestamp, RedisStoreError),
    Loaded,
    /// It was loaded, and updates fail since this time. The last copy stays valid.
    Outdated(Timestamp, RedisStoreError),
}

/// Copy of the overrides in this process: what is known of it outside of the task that keeps it.
#[derive(Debug)]
pub(super) struct OverrideCopy {
    /// Version of the copy. Locked while the copy changes, so that no older one replaces it.
    state: tokio::sync::Mutex<CopyState>,
    load: watch::Sender<LoadState>,
    started_at: Timestamp,
    /// When the first load was done.
    loaded_at: OnceLock<Timestamp>,
    max: usize,
}

impl OverrideCopy {
    pub(super) fn new(started_at: Timestamp, max: usize) -> Self {
        Self {
            state: tokio::sync::Mutex::default(),
            load: watch::Sender::new(LoadState::Loading),
            started_at,
            loaded_at: OnceLock::new(),
            max,
        }
    }
}

impl OverrideStore for RedisStore {
    fn table(&self) -> &Overrides {
        &self.shared.overrides
    }

    fn loaded(&self) -> StoreFuture<()> {
        let shared = Arc::clone(&self.shared);
        // The other half is for the decision that follows.
        let within = shared.deadline / 2;
        self.spawn(async move { shared.wait_for_overrides(within).await })
    }

    fn set(&self, new: Override) -> StoreFuture<()> {
        self.spawn_change(Arc::clone(&self.shared).set_override(new))
    }

    fn remove(&self, subject: &Subject<'_>, rule: &str) -> StoreFuture<bool> {
        let of = Override::of(*subject, rule);
        self.spawn_change(Arc::clone(&self.shared).remove_override(of))
    }
}

impl Shared {
    /// Sets an override for all processes.
    pub(super) async fn set_override(
        self: Arc<Self>,
        new: Override,
    ) -> Result<(), RedisStoreError> {
        let window = if new.quota().counts_nothing() {
            "*".to_owned()
        } else {
            new.quota().window().to_string()
        };
        // Locked, so that the poll does not replace the copy by an older one in between.
        let mut state = self.copy.state.lock().await;
        let (id, _) = self.change("set", &new, &window).await?;
        self.overrides.set(new);
        state.add_own_change(id);
        Ok(())
    }

    /// Removes the overrides of a subject under a rule. Returns whether there were any.
    pub(super) async fn remove_override(
        self: Arc<Self>,
        of: Override,
    ) -> Result<bool, RedisStoreError> {
        let mut state = self.copy.state.lock().await;
        let (id, removed) = self.change("remove", &of, "").await?;
        self.overrides.remove(&of.subject(), of.rule());
        if removed > 0 {
            state.add_own_change(id);
        }
        Ok(removed > 0)
    }

    /// Runs a change in Redis. Returns its random id, and how many overrides it removed. A removal of
    /// nothing is not in the log.
    async fn change(
        &self,
        verb: &str,
        new: &Override,
        window: &str,
    ) -> Result<(String, i64), RedisStoreError> {
        let clock = if self.use_client_clock {
            // The clocks of other processes may be behind. 0 if the store has no clock.
            let now = self.wall.now().unwrap_or_default();
            let micros = now.as_micros().saturating_sub(CLIENT_CLOCK_SLACK);
            micros.to_string()
        } else {
            "server".to_owned()
        };
        let field = Prefix::hash_of(&new.subject(), new.rule());
        let of = written(&Override::of(new.subject(), new.rule()));
        let random = RandomState::new();
        let id = format!("{:016x}{:016x}", random.hash_one(0), random.hash_one(1));
        let (max, log) = (self.copy.max.to_string(), LOG_LEN.to_string());
        let value = written(new);
        let arguments = [verb, &field, &of, window, &value, &clock, &id, &max, &log];
        let (keys, arguments) = ([self.prefix.of_overrides()], arguments.map(str::as_bytes));
        let place = self.servers.place();
        let changed = self.servers.run(script::overrides(), &keys, &arguments);
        match changed.await? {
            TOO_MANY => Err(RedisStoreError::new(
                place,
                ErrorCause::TooManyOverrides(self.copy.max),
            )),
            UNREADABLE_HEAD => Err(RedisStoreError::new(place, ErrorCause::UnreadableOverrides)),
            removed => Ok((id, removed)),
        }
    }

    /// Returns how long a decision may take. A decision that has waited for the overrides has used up to
    /// half of its deadline. Decisions that start shortly after the load without such a wait have no more
    /// time than it.
    pub(super) fn time_to_decide(&self) -> Duration {
        let loaded_at = self.copy.loaded_at.get();
        let has_waited = loaded_at.is_some_and(|loaded_at| {
            self.clock.now().duration_since(*loaded_at) < self.deadline / 2
        });
        if has_waited {
            self.deadline / 2
        } else {
            self.deadline
        }
    }

    /// Waits up to `within` until the first load is done.
    pub(super) async fn wait_for_overrides(&self, within: Duration) -> Result<(), RedisStoreError> {
        let mut load = self.copy.load.subscribe();
        let ended = load.wait_for(|load| !matches!(load, LoadState::Loading));
        match timeout(within, ended).await {
            Ok(Ok(load)) => match &*load {
                LoadState::Failing(_, error) => Err(error.clone()),
                LoadState::Loading | LoadState::Loaded | LoadState::Outdated(..) => Ok(()),
            },
            Ok(Err(_)) => Ok(()),
            Err(_) => Err(RedisStoreError::new(
                self.servers.place(),
                ErrorCause::OverridesNotLoaded,
            )),
        }
    }

    /// Returns since when and why the overrides are not loaded, once decisions fail for it, or why
    /// they will stay outdated.
    pub(super) fn failing_load(&self) -> Option<(Timestamp, RedisStoreError)> {
        match &*self.copy.load.borrow() {
            LoadState::Loaded => None,
            LoadState::Failing(since, error) => Some((*since, error.clone())),
            LoadState::Outdated(since, error) => {
                let is_permanent = error.kind() == StoreErrorKind::Permanent;
                is_permanent.then(|| (*since, error.clone()))
            }
            LoadState::Loading => {
                let since = self.copy.started_at;
                let is_late = self.clock.now().duration_since(since) >= self.deadline / 2;
                let error =
                    || RedisStoreError::new(self.servers.place(), ErrorCause::OverridesNotLoaded);
                is_late.then(|| (since, error()))
            }
        }
    }
}
