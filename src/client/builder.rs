//! Builder of the layer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::hosts::Hosts;
use super::jitter::Jitter;
use super::layer::{KeyFn, LowLimitFn, PaceLayer, PaceState};
use crate::clock::{Clock, SystemClock};
use crate::error::{ValidationError, ValidationErrors};
use crate::head::RequestHead;
use crate::headers::Limits;

/// Builder of a [`PaceLayer`].
#[must_use]
pub struct PaceLayerBuilder {
    max_wait: Duration,
    max_retries: u32,
    retry_share: f64,
    slow_below: f64,
    low_below: f64,
    on_low: Option<LowLimitFn>,
    max_hosts: usize,
    clock: Option<Arc<dyn Clock>>,
    key: Option<KeyFn>,
    seed: Option<u64>,
}

impl PaceLayerBuilder {
    pub(super) fn new() -> Self {
        Self {
            // Enough for limits per minute, with the jitter after their reset.
            max_wait: Duration::from_mins(2),
            max_retries: 3,
            retry_share: 0.2,
            slow_below: 0.05,
            low_below: 0.1,
            on_low: None,
            max_hosts: 1_024,
            clock: None,
            key: None,
            seed: None,
        }
    }

    /// Sets the longest total delay of one request: before it is sent and between its retries. Default: 2
    /// minutes.
    ///
    /// A request that has waited that long is sent, even if the limit is used up. It is not retried
    /// if the wait would be longer.
    pub const fn max_wait(mut self, max: Duration) -> Self {
        self.max_wait = max;
        self
    }

    /// Sets the maximum number of retries of one request. Default: 3.
    pub const fn max_retries(mut self, max: u32) -> Self {
        self.max_retries = max;
        self
    }

    /// Sets the maximum share of retries among the requests to a host, from 0 to 1. Ten more are allowed. Default:
    /// 0.2. With 0 there are no retries.
    pub const fn retry_budget(mut self, share: f64) -> Self {
        self.retry_share = share;
        self
    }

    /// Sets the share of a limit, from 0 to 1, below which requests wait for the reset, if that is within five
    /// minutes. Default: 0.05. What is left covers requests of other processes with the same limit.
    pub const fn slow_below(mut self, share: f64) -> Self {
        self.slow_below = share;
        self
    }

    /// Calls `closure` with the host and its limits when less than a tenth of a limit remains, or less than
    /// [`low_below`](Self::low_below). Called again only after more has remained in between. It should not
    /// block. A panic is caught.
    ///
    /// ```
    /// use tollgate::client::PaceLayer;
    ///
    /// let pace = PaceLayer::builder()
    ///     .on_low_limit(|host, limits| {
    ///         eprintln!("{host}: {:?} of {:?} left", limits.remaining, limits.limit);
    ///     })
    ///     .build()?;
    /// # let _ = pace;
    /// # Ok::<(), tollgate::ValidationErrors>(())
    /// ```
    pub fn on_low_limit(mut self, closure: impl Fn(&str, &Limits) + Send + Sync + 'static) -> Self {
        self.on_low = Some(Arc::new(closure));
        self
    }

    /// Sets the share of a limit, from 0 to 1, below which [`on_low_limit`](Self::on_low_limit) is called. Default:
    /// 0.1.
    pub const fn low_below(mut self, share: f64) -> Self {
        self.low_below = share;
        self
    }

    /// Sets the maximum number of hosts and keys with stored limits. Default: 1024.
    pub const fn max_hosts(mut self, max: usize) -> Self {
        self.max_hosts = max;
        self
    }

    /// Separates several limits at one host, for example by account or by path. A request without a
    /// key counts for the host. Do not use keys that an untrusted party can choose: their number is
    /// bounded by [`max_hosts`](Self::max_hosts).
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

    /// The clock, also for sleeps. Default: the system clock.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Seed of the jitter, for tests.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Builds the layer. Returns all invalid settings.
    pub fn build(self) -> Result<PaceLayer, ValidationErrors> {
        let mut problems = ValidationErrors::default();
        for (name, share) in [
            ("retry_budget", self.retry_share),
            ("slow_below", self.slow_below),
            ("low_below", self.low_below),
        ] {
            if !(0.0..=1.0).contains(&share) {
                let error = ValidationError::new(name, share, "a share from 0 to 1");
                problems.push(error.at(name));
            }
        }
        if self.max_hosts == 0 {
            let error = ValidationError::new("max_hosts", 0, "at least 1");
            problems.push(error.at("max_hosts"));
        }
        Ok(problems.or(self)?.finish())
    }

    /// Builds the layer from valid settings.
    pub(super) fn finish(self) -> PaceLayer {
        PaceLayer::with(PaceState {
            hosts: Hosts::new(self.max_hosts),
            clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock::new())),
            jitter: self.seed.map_or_else(Jitter::new, Jitter::seeded),
            key: self.key,
            max_wait: self.max_wait,
            max_retries: self.max_retries,
            retry_share: self.retry_share,
            slow_below: self.slow_below,
            low_below: self.low_below,
            on_low: self.on_low,
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
            .field("low_below", &self.low_below)
            .field("max_hosts", &self.max_hosts)
            .finish_non_exhaustive()
    }
}
