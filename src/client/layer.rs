//! The layer, and the state that all requests share.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tower_layer::Layer;

use super::builder::PaceLayerBuilder;
use super::host::Host;
use super::hosts::{Hosts, host_of, keyed};
use super::jitter::Jitter;
use super::rate_limit_error::RateLimitError;
use super::retry_budget::RetryBudget;
use super::service::PaceService;
use crate::catch_panic::catch_panic;
use crate::clock::Clock;
use crate::head::RequestHead;
use crate::headers::Limits;

/// Paces and retries outbound requests by the limits that servers send.
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
/// Clones share their state, and so do all services of one layer: use one layer for all clients of
/// a process. Hosts are independent of each other.
///
/// # Behaviour
///
/// - While enough of the limit remains, requests are sent at once.
/// - Below 5 % of the limit, if it resets within five minutes, and when nothing remains, requests
///   wait for the reset, with jitter after it.
/// - Below ten requests (of a small limit: below half), the client backs off: each request is sent
///   later after the one before it.
/// - After `Retry-After`, requests wait until that instant, with jitter after it.
/// - A request that got 429 is retried after `Retry-After`, if its body can be replayed: see
///   [`ReplayBody`](super::ReplayBody). So is one that got 503, if that has a `Retry-After` or the
///   method is idempotent.
///
/// # Guarantees
///
/// - No request is delayed longer than [`max_wait`](PaceLayerBuilder::max_wait) in total.
/// - Among `n` requests to a host there are at most `n × share + 10`
///   [retries](PaceLayerBuilder::retry_budget).
/// - Responses and errors are those of the inner service.
/// - Bodies are not read.
#[derive(Clone)]
pub struct PaceLayer {
    shared: Arc<PaceState>,
}

/// Closure that returns the key of a request.
pub(super) type KeyFn = Arc<dyn Fn(&RequestHead<'_>) -> Option<String> + Send + Sync>;

/// Closure that is called when little remains of a limit, with the host.
pub(super) type LowLimitFn = Arc<dyn Fn(&str, &Limits) + Send + Sync>;

/// Settings, and the state of all hosts.
pub(super) struct PaceState {
    pub(super) hosts: Hosts,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) jitter: Jitter,
    pub(super) key: Option<KeyFn>,
    pub(super) max_wait: Duration,
    pub(super) max_retries: u32,
    pub(super) retry_share: f64,
    pub(super) slow_below: f64,
    pub(super) low_below: f64,
    pub(super) on_low: Option<LowLimitFn>,
}

impl PaceLayer {
    /// Returns a layer with default settings.
    #[must_use]
    pub fn new() -> Self {
        PaceLayerBuilder::new().finish()
    }

    /// Returns a builder.
    pub fn builder() -> PaceLayerBuilder {
        PaceLayerBuilder::new()
    }

    pub(super) fn with(shared: PaceState) -> Self {
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the latest limits of a host: `api.example.com`, or with a port that is not the default,
    /// `127.0.0.1:3000`.
    #[must_use]
    pub fn limits(&self, host: &str) -> Option<Limits> {
        let host = self.shared.hosts.get(&host.to_ascii_lowercase())?;
        host.limits()
    }

    /// Returns the latest limits of requests with this [key](PaceLayerBuilder::key_with).
    #[must_use]
    pub fn limits_of_key(&self, host: &str, key: &str) -> Option<Limits> {
        let name = keyed(host.to_ascii_lowercase(), key);
        self.shared.hosts.get(&name)?.limits()
    }

    /// Returns the response, or an error if a limit denied the request: for callers that propagate denials
    /// with `?`.
    ///
    /// Read the body first: the error has the details that are in the body. The layer itself never returns this error.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use http::Response;
    /// use tollgate::client::{PaceLayer, RateLimitError};
    ///
    /// fn items(pace: &PaceLayer, response: Response<Bytes>) -> Result<Bytes, RateLimitError> {
    ///     let response = pace.check(response)?;
    ///     Ok(response.into_body())
    /// }
    ///
    /// let served = Response::new(Bytes::from("[]"));
    /// assert_eq!(items(&PaceLayer::new(), served)?, "[]");
    /// # Ok::<(), RateLimitError>(())
    /// ```
    pub fn check(&self, response: Response<Bytes>) -> Result<Response<Bytes>, RateLimitError> {
        let (status, headers, body) = (response.status(), response.headers(), response.body());
        match RateLimitError::read(status, headers, body, self.shared.clock.now()) {
            Some(error) => Err(error),
            None => Ok(response),
        }
    }

    /// Returns the number of hosts and keys with stored limits.
    #[must_use]
    pub fn known_hosts(&self) -> usize {
        self.shared.hosts.len()
    }
}

impl PaceState {
    /// Calls the closure for low limits. A panic does not reach the request.
    pub(super) fn report_low(&self, host: &str, limits: &Limits) {
        if let Some(on_low) = &self.on_low {
            let _ = catch_panic(|| on_low(host, limits));
        }
    }

    /// Returns the host of a request.
    pub(super) fn host<B>(&self, request: &Request<B>) -> Arc<Host> {
        let mut name = host_of(request);
        let key = self.key.as_ref();
        // If the closure panics, the request counts for the host.
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
