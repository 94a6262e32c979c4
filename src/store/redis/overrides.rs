//! Overrides in Redis: one hash for all of them, with a log of changes, and a copy in every process.
//!
//! Every process polls the version of the hash. It reads the changes since its own version from the
//! log. If the log no longer has them, it reads the whole hash in pages, over a connection of its own:
//! no decision waits for them.

mod codec;
mod load;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use self::codec::written;
use self::load::CopyState;
use super::Shared;
use super::call::ScriptCall;
use super::error::RedisStoreError;
use super::key::Prefix;
use super::script;
use crate::clock::{Clock as _, Timestamp};
use crate::error::StoreErrorKind;
use crate::store::Override;

/// Number of changes that the log keeps. A process that has missed more reads all overrides.
const LOG_LEN: u64 = 1_000;

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
    max: usize,
}

impl OverrideCopy {
    pub(super) fn new(started_at: Timestamp, max: usize) -> Self {
        Self {
            state: tokio::sync::Mutex::default(),
            load: watch::Sender::new(LoadState::Loading),
            started_at,
            max,
        }
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
        let removed = self.change("set", &new, &window).await?;
        if removed < 0 {
            let place = self.servers.place();
            return Err(RedisStoreError::too_many_overrides(place, self.copy.max));
        }
        self.overrides.set(new);
        state.has_own_changes = true;
        Ok(())
    }

    /// Removes the overrides of a subject under a rule. Returns whether there were any.
    pub(super) async fn remove_override(
        self: Arc<Self>,
        of: Override,
    ) -> Result<bool, RedisStoreError> {
        let mut state = self.copy.state.lock().await;
        let removed = self.change("remove", &of, "").await?;
        self.overrides.remove(&of.subject(), of.rule());
        state.has_own_changes |= removed > 0;
        Ok(removed > 0)
    }

    async fn change(
        &self,
        verb: &str,
        new: &Override,
        window: &str,
    ) -> Result<i64, RedisStoreError> {
        let clock = if self.use_client_clock { "" } else { "server" };
        let field = Prefix::hash_of(&new.subject(), new.rule());
        let of = written(&Override::of(new.subject(), new.rule()));
        let random = RandomState::new();
        let id = format!("{:016x}{:016x}", random.hash_one(0), random.hash_one(1));
        let (max, log) = (self.copy.max.to_string(), LOG_LEN.to_string());
        let value = written(new);
        let arguments = [verb, &field, &of, window, &value, clock, &id, &max, &log];
        let call = ScriptCall {
            script: script::overrides(),
            keys: &[self.prefix.of_overrides()],
            arguments: &arguments.map(str::as_bytes),
        };
        self.servers.run(call, super::upkeep::DEADLINE).await
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
            Err(_) => Err(RedisStoreError::overrides_not_loaded(self.servers.place())),
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
                let is_late = self.clock.now().duration_since(since) > self.deadline;
                let error = || RedisStoreError::overrides_not_loaded(self.servers.place());
                is_late.then(|| (since, error()))
            }
        }
    }
}
