//! What callers can ask for: how their limits stand.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use serde::Serialize;

use super::instant::Instant;
use super::reply;
use crate::clock::Timestamp;
use crate::error::{Error, ValidationError, ValidationErrors};
use crate::head::RequestHead;
use crate::headers::retry_after_secs;
use crate::layer::RateLimitLayer;
use crate::limiter::Limiter;
use crate::pipeline::{InspectedCaller, Inspection, LimitStatus};
use crate::policy::Exemption;
use crate::quota::{IntoQuota, Quota};
use crate::store::MemoryStore;

/// An endpoint that tells callers how their limits stand; see [the module](super).
///
/// ```
/// use axum::Router;
/// use tollgate::RateLimitLayer;
/// use tollgate::admin::Status;
///
/// let limits = RateLimitLayer::new("100/minute")?;
/// let status: Router = Status::new(&limits).path("/limits").quota("10/minute").router()?;
/// # let _ = status;
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct Status {
    layer: RateLimitLayer,
    path: String,
    quota: Result<Quota, ValidationError>,
}

/// What answers.
struct Desk {
    layer: RateLimitLayer,
    limiter: Limiter,
}

impl Status {
    /// More callers than this share one counter for how often they ask.
    const CALLERS: usize = 100_000;

    /// The status of this layer's limits, at `/v1/rate-limits/status`.
    pub fn new(layer: &RateLimitLayer) -> Self {
        Self {
            layer: layer.clone(),
            path: "/v1/rate-limits/status".to_owned(),
            quota: Quota::per_minute(60),
        }
    }

    /// At another path.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// How often one caller may ask; 60 times a minute, if this is not said. `unlimited` is
    /// allowed, and hardly wise.
    pub fn quota(mut self, quota: impl IntoQuota) -> Self {
        let quota = quota.into_quota();
        self.quota = quota.map_err(|wrong| wrong.within("status"));
        self
    }

    /// Checks the settings. [Merge](Router::merge) your layered router into this one, as
    /// [the module](super) shows, so that asking is not counted on the limits that are asked for.
    pub fn router<S>(self) -> Result<Router<S>, Error>
    where
        S: Clone + Send + Sync + 'static,
    {
        let mut problems = ValidationErrors::default();
        problems.note(check(&self.path));
        let quota = problems.note(self.quota).unwrap_or_else(Quota::unlimited);
        problems.or(())?;
        let pipeline = self.layer.pipeline();
        let store = MemoryStore::builder().capacity(Self::CALLERS).build()?;
        let limiter = Limiter::builder()
            .name("status")
            .quota(quota)
            .store(store)
            .clock(pipeline.clock())
            .build()?;
        let desk = Desk {
            layer: self.layer,
            limiter,
        };
        let routes = Router::new().route(&self.path, get(status));
        Ok(routes.with_state(Arc::new(desk)))
    }
}

/// A path that axum takes as it is.
fn check(path: &str) -> Result<(), ValidationError> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"{}*:?#".contains(&byte);
    if path.starts_with('/') && path.bytes().all(plain) {
        return Ok(());
    }
    let expected = "a path such as `/v1/rate-limits/status`, without places for values";
    Err(ValidationError::new(
        "status path",
        path.escape_debug(),
        expected,
    ))
}

async fn status(State(desk): State<Arc<Desk>>, request: Request) -> Response {
    let (pipeline, head) = (desk.layer.pipeline(), RequestHead::of(&request));
    let asker = match pipeline.asker(&head) {
        Ok(asker) => asker,
        Err(refused) => return refused.map(Body::from),
    };
    let decision = desk.limiter.check(asker.caller().known_by()).wait();
    // Memory does not fail; if it did, that would be no reason to tell nothing.
    if let Ok(decision) = decision
        && decision.is_denied()
    {
        let counter = &desk.limiter.counters()[0];
        let denied = pipeline.denied_to_ask(&head, &asker, counter, &decision);
        return denied.map(Body::from);
    }
    let inspected = pipeline.inspect(&asker).await;
    let mut response = reply::ok(&Told::new(&asker, &inspected));
    reply::protect(response.headers_mut());
    response
}

#[derive(Serialize)]
struct Told<'a> {
    counted_by: &'a str,
    tier: &'a str,
    exempt: Option<&'static str>,
    degraded: bool,
    limits: Vec<ToldLimit<'a>>,
    timestamp: Instant,
}

#[derive(Serialize)]
struct ToldLimit<'a> {
    policy: &'a str,
    limit: u64,
    used: u64,
    remaining: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reset_at: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

impl<'a> Told<'a> {
    fn new(asker: &'a InspectedCaller, inspected: &'a Inspection) -> Self {
        let is_told = |limit: &&LimitStatus| !limit.dry_run && !limit.quota.is_unlimited();
        let limits = inspected.limits.iter().filter(is_told);
        Self {
            counted_by: asker.known_by(),
            tier: &inspected.tier,
            exempt: inspected.exemption.map(Exemption::name),
            degraded: inspected.degraded,
            limits: limits
                .map(|limit| ToldLimit::new(limit, inspected.at))
                .collect(),
            timestamp: Instant(inspected.at),
        }
    }
}

impl<'a> ToldLimit<'a> {
    fn new(limit: &'a LimitStatus, at: Timestamp) -> Self {
        let reset_at = limit.reset_at();
        let wait = limit.is_used_up().then_some(reset_at).flatten();
        Self {
            policy: &limit.policy,
            limit: limit.usage.limit(),
            used: limit.usage.used(),
            remaining: limit.usage.remaining(),
            reset_at: reset_at.map(Instant::rounded_up),
            retry_after: wait.map(|reset_at| retry_after_secs(reset_at.duration_since(at))),
        }
    }
}
