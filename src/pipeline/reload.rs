//! Other rules from now on, without losing a count.

use std::fmt;
use std::sync::{Arc, Mutex};

use super::RequestPipeline;
use super::snapshot::{LayerOverrides, Snapshot};
use crate::clock::Timestamp;
use crate::error::{Problems, ReloadError};
use crate::observe;
use crate::policy::Policy;
use crate::sync::locked;

/// Where a policy comes from, to be read again.
pub(crate) trait Origin: fmt::Debug + Send + Sync {
    /// What it says now.
    fn read(&self) -> Result<Change, ReloadError>;

    /// The files that it is made of.
    #[cfg(feature = "config")]
    fn files(&self) -> Vec<std::path::PathBuf>;

    /// What is in them now.
    #[cfg(feature = "config")]
    fn contents(&self) -> Contents;

    /// What was in them when they were last read.
    #[cfg(feature = "config")]
    fn contents_when_read(&self) -> Contents;
}

/// What is in each of some files: the same number for the same text, or that it cannot be read.
#[cfg(feature = "config")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents(pub(crate) Vec<Option<u64>>);

/// Another policy, and what else the file says that it is from.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) policy: Policy,
    pub(crate) file: LayerOverrides,
}

/// Which policy is in force, since when, and whether it could be read when it was last tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyStatus {
    version: u64,
    since: Timestamp,
    failures: u64,
    problem: Option<Arc<str>>,
}

impl PolicyStatus {
    /// 1 for the policy that the layer was built with, and one more for each that took its
    /// place.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Since when it is in force.
    #[must_use]
    pub const fn since(&self) -> Timestamp {
        self.since
    }

    /// How often another policy was put in place.
    #[must_use]
    pub const fn reloads(&self) -> u64 {
        self.version - 1
    }

    /// How often one was refused, and the old one stayed.
    #[must_use]
    pub const fn failures(&self) -> u64 {
        self.failures
    }

    /// Why the last one was refused, unless a later one was not.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

/// How a pipeline comes by another policy.
#[derive(Debug)]
pub(super) struct Reloads {
    origin: Option<Arc<dyn Origin>>,
    /// Held while a policy is read and put in place, so that they come in order. Those who only
    /// look at the status need not wait for a disk.
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
    /// Reads the policy again from where it came from. If it cannot be used, nothing changes.
    pub(crate) fn reload(&self) -> Result<PolicyStatus, ReloadError> {
        let origin = self.origin()?;
        self.replaced(|| origin.read())
    }

    /// Where the policy comes from, if nobody watches it yet.
    #[cfg(feature = "config")]
    pub(crate) fn begin_watching(&self) -> Result<Option<Arc<dyn Origin>>, ReloadError> {
        let origin = Arc::clone(self.origin()?);
        let order = std::sync::atomic::Ordering::Relaxed;
        let is_watched = self.reloads.is_watched.swap(true, order);
        Ok((!is_watched).then_some(origin))
    }

    /// Nobody watches it after all.
    #[cfg(feature = "config")]
    pub(crate) fn end_watching(&self) {
        let order = std::sync::atomic::Ordering::Relaxed;
        self.reloads.is_watched.store(false, order);
    }

    fn origin(&self) -> Result<&Arc<dyn Origin>, ReloadError> {
        let origin = self.reloads.origin.as_ref();
        origin.ok_or_else(|| ReloadError::new("the policy was not read from a file"))
    }

    /// Puts another policy in place.
    pub(crate) fn replace(
        &self,
        policy: Result<Policy, Problems>,
    ) -> Result<PolicyStatus, ReloadError> {
        self.replaced(|| {
            Ok(Change {
                policy: policy?,
                file: self.snapshot.load().file.clone(),
            })
        })
    }

    pub(crate) fn policy_status(&self) -> PolicyStatus {
        locked(&self.reloads.status).clone()
    }

    pub(super) fn policy_version(&self) -> u64 {
        locked(&self.reloads.status).version
    }

    fn replaced(
        &self,
        read: impl FnOnce() -> Result<Change, ReloadError>,
    ) -> Result<PolicyStatus, ReloadError> {
        let _changing = locked(&self.reloads.changing);
        let replaced = read().and_then(|change| Ok(self.put_in_place(change)?));
        let status = self.noted(&replaced);
        // Whoever hears of it may ask for the status.
        match &replaced {
            Ok(()) => observe::reloaded(status.version),
            Err(error) => observe::reload_failed(error),
        }
        replaced.map(|()| status)
    }

    /// The status after an attempt.
    fn noted(&self, replaced: &Result<(), ReloadError>) -> PolicyStatus {
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

    /// For the next request on. Requests that are under way go on with the rules that they
    /// were decided by.
    fn put_in_place(&self, change: Change) -> Result<(), Problems> {
        let snapshot = Snapshot::new(
            change.policy,
            &self.code,
            change.file,
            Some(&self.snapshot.load().failed_auth),
            &self.watch,
        )?;
        self.snapshot.store(Arc::new(snapshot));
        Ok(())
    }
}
