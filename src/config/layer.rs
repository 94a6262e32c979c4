//! From a file to a layer.

use std::path::PathBuf;

use super::problem::{ConfigProblem, Told};
use super::{Config, ConfigError};
use crate::layer::{RateLimitLayer, RateLimitLayerBuilder};

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
        let known = self.known;
        let mut layer = RateLimitLayer::builder(self.policy).headers(self.headers);
        #[cfg(feature = "jwt")]
        if let Some(jwt) = known.jwt {
            layer = layer.identify(jwt);
        }
        if let Some(header) = known.user_header {
            layer = layer.identify(header);
        }
        if let Some(client_ip) = known.client_ip {
            layer = layer.client_ip(client_ip);
        }
        if let Some(quota) = known.invalid_credentials {
            layer = layer.invalid_credentials(quota);
        }
        if known.rejects_invalid {
            layer = layer.reject_invalid_credentials();
        }
        layer
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
        config.into_layer().build().map_err(|problems| {
            let problem = ConfigProblem::new(Told {
                message: problems.to_string(),
                ..Told::default()
            });
            ConfigError::whole(&name, problem)
        })
    }
}
