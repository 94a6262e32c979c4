//! Replacement of the snapshot. No counter is lost.

use std::fmt;
use std::sync::{Arc, Mutex};

use super::RequestPipeline;
use super::snapshot::{LayerOverrides, Snapshot};
use crate::clock::Timestamp;
use crate::error::{ReloadError, ValidationErrors};
use crate::policy::Policy;
use crate::sync::locked;

/// Source of a policy that can be read again.
pub(crate) trait Origin: fmt::Debug + Send + Sync {
    /// Reads it.
    fn read(&self) -> Result<Change, ReloadError>;

    /// Reads it, and returns the result only if its files have `contents` before and after the read.
    #[cfg(feature = "config")]
    fn read_if(&self, contents: &Contents) -> Option<Result<Change, ReloadError>>;

    /// Returns its files.
    #[cfg(feature = "config")]
    fn files(&self) -> Vec<std::path::PathBuf>;

    /// Returns the contents of its files.
    #[cfg(feature = "config")]
    fn contents(&self) -> Contents;

    /// Returns the contents of its files when they were last read.
    #[cfg(feature = "config")]
    fn contents_when_read(&self) -> Contents;
}

/// Hashes of the contents of files; for a file that cannot be read, why.
#[cfg(feature = "config")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents(pub(crate) Vec<Result<u64, String>>);

/// A policy that was read, with the other settings of its file.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) policy: Policy,
    pub(crate) file: LayerOverrides,
}

/// Version of the policy, and the result of the last attempt to replace it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyStatus {
    version: u64,
    since: Timestamp,
    failures: u64,
    problem: Option<Arc<str>>,
}

impl PolicyStatus {
    /// Returns the version: 1 for the policy that the layer was built with, and one more for each
    /// replacement.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Returns when the policy took effect.
    #[must_use]
    pub const fn since(&self) -> Timestamp {
        self.since
    }

    /// Returns how often the policy was replaced.
    #[must_use]
    pub const fn reloads(&self) -> u64 {
        self.version - 1
    }

    /// Returns how often a replacement failed. The previous policy stayed.
    #[must_use]
    pub const fn failures(&self) -> u64 {
        self.failures
    }

    /// Returns why the last attempt failed; `None` if it succeeded.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

/// State of reloads.
#[derive(Debug)]
pub(super) struct Reloads {
    origin: Option<Arc<dyn Origin>>,
    /// Held while a policy is read and replaced, so that attempts are ordered. Taken before `status`.
    /// Reading the status does not wait for a disk.
    changing: Mutex<()>,
    status: Mutex<PolicyStatus>,
    #[cfg(feature = "config")]
    is_watched: std::sync::atomic::AtomicBool,
}

impl Reloads {
    pub(super) fn new(origin: Option<Arc<dyn Origin>>, now: Timestamp) -> Self {
        let status = PolicyStatus {
            version: 1,
            since: now,
            failures: 0,
            problem: None,
        };
        Self {
            origin,
            changing: Mutex::new(()),
            status: Mutex::new(status),
            #[cfg(feature = "config")]
            is_watched: std::sync::atomic::AtomicBool::new(false),
        }
    }
}

impl RequestPipeline {
    /// Reads the policy again. If it is invalid, nothing changes.
    pub(crate) fn reload(&self) -> Result<PolicyStatus, ReloadError> {
        let origin = self.origin()?;
        let _changing = locked(&self.reloads.changing);
        self.replace_with(origin.read())
    }

    /// Reads the policy again if its files have these contents. Otherwise nothing changes, and nothing is
    /// reported. Problems are logged, and are part of the status.
    #[cfg(feature = "config")]
    pub(crate) fn reload_if(&self, contents: &Contents) {
        let _changing = locked(&self.reloads.changing);
        let origin = self.reloads.origin.as_ref();
        if let Some(read) = origin.and_then(|origin| origin.read_if(contents)) {
            let _ = self.replace_with(read);
        }
    }

    /// Returns the source of the policy, unless it is watched already.
    #[cfg(feature = "config")]
    pub(crate) fn begin_watching(&self) -> Result<Option<Arc<dyn Origin>>, ReloadError> {
        let origin = Arc::clone(self.origin()?);
        let order = std::sync::atomic::Ordering::Relaxed;
        let is_watched = self.reloads.is_watched.swap(true, order);
        Ok((!is_watched).then_some(origin))
    }

    /// Reverts [`begin_watching`](Self::begin_watching).
    #[cfg(feature = "config")]
    pub(crate) fn end_watching(&self) {
        let order = std::sync::atomic::Ordering::Relaxed;
        self.reloads.is_watched.store(false, order);
    }

    fn origin(&self) -> Result<&Arc<dyn Origin>, ReloadError> {
        let origin = self.reloads.origin.as_ref();
        origin.ok_or_else(|| ReloadError::new("the policy was not read from a file"))
    }

    /// Replaces the policy.
    pub(crate) fn replace(
        &self,
        policy: Result<Policy, ValidationErrors>,
    ) -> Result<PolicyStatus, ReloadError> {
        let _changing = locked(&self.reloads.changing);
        let change = policy.map(|policy| Change {
            policy,
            file: self.snapshot.load().file.clone(),
        });
        self.replace_with(change.map_err(ReloadError::from))
    }

    pub(crate) fn policy_status(&self) -> PolicyStatus {
        locked(&self.reloads.status).clone()
    }

    pub(super) fn policy_version(&self) -> u64 {
        locked(&self.reloads.status).version
    }

    /// Replaces the policy by what was read. The caller holds `changing`, since before it was read.
    fn replace_with(&self, read: Result<Change, ReloadError>) -> Result<PolicyStatus, ReloadError> {
        let replaced = read.and_then(|change| Ok(self.swap_snapshot(change)?));
        let status = self.update_status(&replaced);
        // After the status has changed, since a subscriber may read it.
        match &replaced {
            Ok(()) => self.telemetry.reloaded(status.version),
            Err(error) => self.telemetry.reload_failed(error),
        }
        replaced.map(|()| status)
    }

    /// Updates the status after an attempt.
    fn update_status(&self, replaced: &Result<(), ReloadError>) -> PolicyStatus {
        let mut status = locked(&self.reloads.status);
        match replaced {
            Ok(()) => {
                status.version += 1;
                status.since = self.wall_now();
                status.problem = None;
            }
            Err(error) => {
                status.failures += 1;
                status.problem = Some(error.to_string().into());
            }
        }
        status.clone()
    }

    /// Swaps the snapshot. Requests in flight keep the one that they began with.
    fn swap_snapshot(&self, change: Change) -> Result<(), ValidationErrors> {
        let snapshot = Snapshot::new(
            change.policy,
            &self.code,
            change.file,
            Some(&self.snapshot.load().failed_auth),
            &self.telemetry,
        )?;
        self.telemetry.set_alert_thresholds(snapshot.alerts());
        self.checks.check_networks(snapshot.client_ip());
        self.snapshot.store(Arc::new(snapshot));
        Ok(())
    }
}
