//! The layer: what all requests share.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use tower_layer::Layer;

use super::budget::Budget;
use super::builder::PoliteLayerBuilder;
use super::dice::Dice;
use super::host::Host;
use super::hosts::{Hosts, host_of, keyed};
use super::service::Polite;
use crate::catch_panic::catch_panic;
use crate::clock::Clock;
use crate::head::RequestHead;
use crate::headers::Limits;

/// Sends requests no faster than the server wants them.
///
/// ```
/// use std::time::Duration;
/// use tollgate::client::PoliteLayer;
///
/// let polite = PoliteLayer::builder()
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
///   be: see [`Resend`](super::Resend). So is one that met a 503, if that came with a
///   `Retry-After` or if its method is idempotent.
///
/// # What it promises
///
/// - No request is held back longer than [`max_wait`](PoliteLayerBuilder::max_wait) in all,
///   whatever the server says.
/// - Among `n` requests to a host there are never more than `n × share + 10`
///   [retries](PoliteLayerBuilder::retry_budget).
/// - Responses and errors are those of the service within. A response that is given up on is
///   the server's own.
/// - It never reads a body.
#[derive(Clone)]
pub struct PoliteLayer {
    shared: Arc<Shared>,
}

/// What chooses one of the callers' own keys.
pub(super) type KeyFn = Arc<dyn Fn(&RequestHead<'_>) -> Option<String> + Send + Sync>;

/// Settings, and everything that is known.
pub(super) struct Shared {
    pub(super) hosts: Hosts,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) dice: Dice,
    pub(super) key: Option<KeyFn>,
    pub(super) max_wait: Duration,
    pub(super) max_retries: u32,
    pub(super) retry_share: f64,
    pub(super) slow_below: f64,
}

impl PoliteLayer {
    /// A layer with the usual settings.
    #[must_use]
    pub fn new() -> Self {
        PoliteLayerBuilder::new().finish()
    }

    /// A layer with settings of your own.
    pub fn builder() -> PoliteLayerBuilder {
        PoliteLayerBuilder::new()
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

    /// What a host has told last about requests with this [key](PoliteLayerBuilder::key_with).
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
        let budget = || Budget::new(self.retry_share);
        self.hosts.get_or_insert(&name, budget)
    }
}

impl Default for PoliteLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for PoliteLayer {
    type Service = Polite<S>;

    fn layer(&self, inner: S) -> Polite<S> {
        Polite::new(inner, Arc::clone(&self.shared))
    }
}

impl fmt::Debug for PoliteLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoliteLayer")
            .field("known_hosts", &self.known_hosts())
            .field("max_wait", &self.shared.max_wait)
            .field("max_retries", &self.shared.max_retries)
            .finish_non_exhaustive()
    }
}
