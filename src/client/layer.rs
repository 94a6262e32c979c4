//! The layer: what all requests share.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use tower_layer::Layer;

use super::builder::PaceLayerBuilder;
use super::host::Host;
use super::hosts::{Hosts, host_of, keyed};
use super::jitter::Jitter;
use super::retry_budget::RetryBudget;
use super::service::PaceService;
use crate::catch_panic::catch_panic;
use crate::clock::Clock;
use crate::head::RequestHead;
use crate::headers::Limits;

/// Sends requests no faster than the server wants them.
///
/// ```
/// use std::time::Duration;
/// use tollgate::client::PaceLayer;
///
/// let polite = PaceLayer::builder()
///     .max_wait(Duration::from_secs(30))
///     .max_retries(2)
///     .build()?;
/// assert_eq!(polite.limits("api.example.com"), None);
/// # Ok::<(), tollgate::ValidationErrors>(())
/// ```
///
/// Clones share what they know, and so do all services that one layer was put around: one layer
/// for all clients of a process is best. It has no type parameters, and knows each host by
/// itself.
///
/// # What it does
///
/// - Nothing, as long as there is plenty.
/// - When less than 5 % of the limit are left and it resets within five minutes, or when fewer
///   than ten requests are left (of a small limit: less than half), what is left is spread over
///   the time until the reset.
/// - When nothing is left, or after `Retry-After`, requests wait; past the instant they scatter,
///   so that there is no rush at it.
/// - A request that was turned away with 429 is sent again after `Retry-After`, if its body can
///   be: see [`ReplayBody`](super::ReplayBody). So is one that met a 503, if that came with a
///   `Retry-After` or if its method is idempotent.
///
/// # What it promises
///
/// - No request is held back longer than [`max_wait`](PaceLayerBuilder::max_wait) in all,
///   whatever the server says.
/// - Among `n` requests to a host there are never more than `n × share + 10`
///   [retries](PaceLayerBuilder::retry_budget).
/// - Responses and errors are those of the service within. A response that is given up on is
///   the server's own.
/// - It never reads a body.
#[derive(Clone)]
pub struct PaceLayer {
    shared: Arc<Shared>,
}

/// What chooses one of the callers' own keys.
pub(super) type KeyFn = Arc<dyn Fn(&RequestHead<'_>) -> Option<String> + Send + Sync>;

/// Settings, and everything that is known.
pub(super) struct Shared {
    pub(super) hosts: Hosts,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) jitter: Jitter,
    pub(super) key: Option<KeyFn>,
    pub(super) max_wait: Duration,
    pub(super) max_retries: u32,
    pub(super) retry_share: f64,
    pub(super) slow_below: f64,
}

impl PaceLayer {
    /// A layer with the usual settings.
    #[must_use]
    pub fn new() -> Self {
        PaceLayerBuilder::new().finish()
    }

    /// A layer with settings of your own.
    pub fn builder() -> PaceLayerBuilder {
        PaceLayerBuilder::new()
    }

    pub(super) fn with(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
        }
    }

    /// What a host has told last: `api.example.com`, or with its port, if that is not the
    /// usual one, `127.0.0.1:3000`.
    #[must_use]
    pub fn limits(&self, host: &str) -> Option<Limits> {
        let host = self.shared.hosts.get(&host.to_ascii_lowercase())?;
        host.limits()
    }

    /// What a host has told last about requests with this [key](PaceLayerBuilder::key_with).
    #[must_use]
    pub fn limits_of_key(&self, host: &str, key: &str) -> Option<Limits> {
        let name = keyed(host.to_ascii_lowercase(), key);
        self.shared.hosts.get(&name)?.limits()
    }

    /// How many hosts and keys are known.
    #[must_use]
    pub fn known_hosts(&self) -> usize {
        self.shared.hosts.len()
    }
}

impl Shared {
    /// Whom a request is for.
    pub(super) fn host<B>(&self, request: &Request<B>) -> Arc<Host> {
        let mut name = host_of(request);
        let key = self.key.as_ref();
        // Should it panic, the request counts for the host.
        if let Some(key) =
            key.and_then(|key| catch_panic(|| key(&RequestHead::of(request))).flatten())
        {
            name = keyed(name, &key);
        }
        let budget = || RetryBudget::new(self.retry_share);
        self.hosts.get_or_insert(&name, budget)
    }
}

impl Default for PaceLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for PaceLayer {
    type Service = PaceService<S>;

    fn layer(&self, inner: S) -> PaceService<S> {
        PaceService::new(inner, Arc::clone(&self.shared))
    }
}

impl fmt::Debug for PaceLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PaceLayer")
            .field("known_hosts", &self.known_hosts())
            .field("max_wait", &self.shared.max_wait)
            .field("max_retries", &self.shared.max_retries)
            .finish_non_exhaustive()
    }
}
