//! Settings of the layer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::hosts::Hosts;
use super::jitter::Jitter;
use super::layer::{KeyFn, PaceLayer, Shared};
use crate::clock::{Clock, SystemClock};
use crate::error::{ValidationError, ValidationErrors};
use crate::head::RequestHead;

/// Settings of a [`PaceLayer`].
#[must_use]
pub struct PaceLayerBuilder {
    max_wait: Duration,
    max_retries: u32,
    retry_share: f64,
    slow_below: f64,
    max_hosts: usize,
    clock: Option<Arc<dyn Clock>>,
    key: Option<KeyFn>,
    seed: Option<u64>,
}

impl PaceLayerBuilder {
    pub(super) fn new() -> Self {
        Self {
            // Enough for limits per minute, and for those who scatter after them.
            max_wait: Duration::from_mins(2),
            max_retries: 3,
            retry_share: 0.2,
            slow_below: 0.05,
            max_hosts: 1_024,
            clock: None,
            key: None,
            seed: None,
        }
    }

    /// The longest that one request is held back in all: before it is sent, and between its
    /// retries. Two minutes, if nothing is said.
    ///
    /// After so long it is sent, whatever was told about the limit; and it is not sent again if
    /// that would take longer.
    pub const fn max_wait(mut self, longest: Duration) -> Self {
        self.max_wait = longest;
        self
    }

    /// How often one request may be sent again: 3 times, if nothing is said.
    pub const fn max_retries(mut self, most: u32) -> Self {
        self.max_retries = most;
        self
    }

    /// Retries are at most this share of the requests to a host, from 0 to 1, and ten more: 0.2,
    /// if nothing is said. With 0, there is none.
    pub const fn retry_budget(mut self, share: f64) -> Self {
        self.retry_share = share;
        self
    }

    /// Which share of a limit is little, from 0 to 1: 0.05, if nothing is said. With 1, requests
    /// are always spread evenly over the time until the reset, if that is within five minutes.
    pub const fn slow_below(mut self, share: f64) -> Self {
        self.slow_below = share;
        self
    }

    /// How many hosts (and keys) are remembered: 1024, if nothing is said.
    pub const fn max_hosts(mut self, most: usize) -> Self {
        self.max_hosts = most;
        self
    }

    /// Tells limits at one host apart, where it has several: by account, or by what is asked
    /// for. Without a key, a request counts for the host itself. The key must not come from
    /// anybody who could make up endless ones.
    ///
    /// ```
    /// use tollgate::client::PaceLayer;
    ///
    /// // The search of this API has a limit of its own.
    /// let polite = PaceLayer::builder()
    ///     .key_with(|head| head.path().starts_with("/search").then(|| "search".to_owned()))
    ///     .build()?;
    /// assert_eq!(polite.limits_of_key("api.example.com", "search"), None);
    /// # Ok::<(), tollgate::ValidationErrors>(())
    /// ```
    pub fn key_with(
        mut self,
        closure: impl Fn(&RequestHead<'_>) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.key = Some(Arc::new(closure));
        self
    }

    /// The clock, which is also slept on; the machine's, if not given.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Waits are scattered by chance. With a seed, by the same chance every time: for tests.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Checks everything and builds the layer.
    pub fn build(self) -> Result<PaceLayer, ValidationErrors> {
        let mut problems = ValidationErrors::default();
        for (name, share) in [
            ("retry_budget", self.retry_share),
            ("slow_below", self.slow_below),
        ] {
            if !(0.0..=1.0).contains(&share) {
                problems.push(ValidationError::new(name, share, "a share from 0 to 1"));
            }
        }
        if self.max_hosts == 0 {
            problems.push(ValidationError::new("max_hosts", 0, "at least 1"));
        }
        Ok(problems.or(self)?.finish())
    }

    /// Builds it from settings that are right.
    pub(super) fn finish(self) -> PaceLayer {
        PaceLayer::with(Shared {
            hosts: Hosts::new(self.max_hosts),
            clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock::new())),
            jitter: self.seed.map_or_else(Jitter::new, Jitter::seeded),
            key: self.key,
            max_wait: self.max_wait,
            max_retries: self.max_retries,
            retry_share: self.retry_share,
            slow_below: self.slow_below,
        })
    }
}

impl fmt::Debug for PaceLayerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PaceLayerBuilder")
            .field("max_wait", &self.max_wait)
            .field("max_retries", &self.max_retries)
            .field("retry_budget", &self.retry_share)
            .field("slow_below", &self.slow_below)
            .field("max_hosts", &self.max_hosts)
            .finish_non_exhaustive()
    }
}
