//! Builds a layer from a policy file.

use std::path::PathBuf;
use std::sync::Arc;

use super::problem::ConfigProblem;
use super::reload::PolicyFile;
use super::{Config, ConfigError};
use crate::layer::{RateLimitLayer, RateLimitLayerBuilder};
use crate::pipeline::{Change, Origin};

impl Config {
    /// Returns a layer builder with the settings of the file. A store, a clock and further identity
    /// sources can be added.
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

    /// Returns the policy and the settings that a layer takes from the file.
    pub(super) fn into_change(self) -> Change {
        Change {
            policy: self.policy,
            file: self.overrides,
        }
    }
}

impl RateLimitLayer {
    /// Builds a layer from a policy file, with a memory store; see [`config`](crate::config).
    ///
    /// For settings that a file cannot have, read the file with
    /// [`Config::from_file`](crate::config::Config::from_file) and continue with
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
