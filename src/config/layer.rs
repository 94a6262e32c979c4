//! From a file to a layer.

use std::path::PathBuf;
use std::sync::Arc;

use super::problem::ConfigProblem;
use super::reload::PolicyFile;
use super::{Config, ConfigError};
use crate::layer::{RateLimitLayer, RateLimitLayerBuilder};
use crate::pipeline::{Change, Origin};

impl Config {
    /// A layer that does what the file says, to which more can be added: a store, a clock, more
    /// ways to know callers.
    ///
    /// ```
    /// use tollgate::MemoryStore;
    /// use tollgate::config::Config;
    ///
    /// let config = Config::from_toml("[global]\nauthenticated = '1000/hour'\n")?;
    /// let limits = config
    ///     .into_layer()
    ///     .store(MemoryStore::builder().capacity(200_000).build()?)
    ///     .build()?;
    /// # let _ = limits;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_layer(self) -> RateLimitLayerBuilder {
        let origin = PolicyFile::of(&self).map(|file| Arc::new(file) as Arc<dyn Origin>);
        let Change { policy, file } = self.into_change();
        RateLimitLayer::builder(policy).with_file_settings(file, origin)
    }

    /// What a layer takes from it.
    pub(super) fn into_change(self) -> Change {
        Change {
            policy: self.policy,
            file: self.overrides,
        }
    }
}

impl RateLimitLayer {
    /// A layer for the policy in this file, counted in memory; see [`config`](crate::config).
    ///
    /// For anything that a file cannot say, read the file with
    /// [`Config::from_file`](crate::config::Config::from_file) and go on with
    /// [`into_layer`](crate::config::Config::into_layer).
    pub fn from_file(path: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        let config = Config::from_file(path)?;
        let name = config.source.name();
        config
            .into_layer()
            .build()
            .map_err(|problems| ConfigError::whole(&name, ConfigProblem::new(problems.to_string())))
    }
}
