//! The status endpoint for callers.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use serde::Serialize;

use super::{json, rounded_up};
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

/// Builder of the endpoint that returns the limits of the caller; see [the module](super).
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

/// State of the status route.
struct StatusState {
    layer: RateLimitLayer,
    limiter: Limiter,
}

impl Status {
    /// Further callers share counters of the endpoint's own quota.
    const MAX_CALLERS: usize = 100_000;

    /// Returns a builder for this layer. Default path: `/v1/rate-limits/status`.
    pub fn new(layer: &RateLimitLayer) -> Self {
        Self {
            layer: layer.clone(),
            path: "/v1/rate-limits/status".to_owned(),
            quota: Quota::per_minute(60),
        }
    }

    /// Sets the path.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Requests of one caller to this endpoint. Default: `60/minute`. `unlimited` is allowed.
    pub fn quota(mut self, quota: impl IntoQuota) -> Self {
        let quota = quota.into_quota();
        self.quota = quota.map_err(|wrong| wrong.within("status"));
        self
    }

    /// Builds the router. [Merge](Router::merge) your layered router into this one, as
    /// [the module](super) shows, so that status requests are not charged to the limits that they
    /// show.
    pub fn router<S>(self) -> Result<Router<S>, Error>
    where
        S: Clone + Send + Sync + 'static,
    {
        let mut problems = ValidationErrors::default();
        problems.note(check(&self.path));
        let quota = problems.note(self.quota).unwrap_or_else(Quota::unlimited);
        problems.or(())?;
        let pipeline = self.layer.pipeline();
        let store = MemoryStore::builder().capacity(Self::MAX_CALLERS).build()?;
        let limiter = Limiter::builder()
            .name("status")
            .quota(quota)
            .store(store)
            .clock(pipeline.clock())
            .build()?;
        let state = StatusState {
            layer: self.layer,
            limiter,
        };
        let routes = Router::new().route(&self.path, get(status));
        Ok(routes.with_state(Arc::new(state)))
    }
}

/// Checks that axum matches the path literally.
fn check(path: &str) -> Result<(), ValidationError> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"{}*:?#".contains(&byte);
    if path.starts_with('/') && path.bytes().all(plain) {
        return Ok(());
    }
    let expected = "a path such as `/v1/rate-limits/status`, without parameters";
    Err(ValidationError::new(
        "status path",
        path.escape_debug(),
        expected,
    ))
}

async fn status(State(state): State<Arc<StatusState>>, request: Request) -> Response {
    let (pipeline, head) = (state.layer.pipeline(), RequestHead::of(&request));
    let caller = match pipeline.inspected_caller(&head) {
        Ok(caller) => caller,
        Err(refused) => return refused.map(Body::from),
    };
    let decision = state.limiter.check(caller.caller().subject()).wait();
    // The memory store does not fail. A failure would not be a reason to reject the request.
    if let Ok(decision) = decision
        && decision.is_denied()
    {
        let counter = &state.limiter.counters()[0];
        let denied = pipeline.reject_status_request(&head, &caller, counter, &decision);
        return denied.map(Body::from);
    }
    let inspected = pipeline.inspect(&caller).await;
    let mut response = json::ok(&StatusResponse::new(&caller, &inspected));
    json::protect(response.headers_mut());
    response
}

#[derive(Serialize)]
struct StatusResponse<'a> {
    counted_by: &'a str,
    tier: &'a str,
    exempt: Option<&'static str>,
    degraded: bool,
    limits: Vec<StatusLimit<'a>>,
    timestamp: Timestamp,
}

#[derive(Serialize)]
struct StatusLimit<'a> {
    policy: &'a str,
    limit: u64,
    used: u64,
    remaining: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reset_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

impl<'a> StatusResponse<'a> {
    fn new(caller: &'a InspectedCaller, inspected: &'a Inspection) -> Self {
        let is_listed = |limit: &&LimitStatus| !limit.dry_run && !limit.quota.is_unlimited();
        let limits = inspected.limits.iter().filter(is_listed);
        Self {
            counted_by: caller.caller().label(),
            tier: &inspected.tier,
            exempt: inspected.exemption.map(Exemption::name),
            degraded: inspected.degraded,
            limits: limits
                .map(|limit| StatusLimit::new(limit, inspected.at))
                .collect(),
            timestamp: inspected.at,
        }
    }
}

impl<'a> StatusLimit<'a> {
    fn new(limit: &'a LimitStatus, at: Timestamp) -> Self {
        let reset_at = limit.reset_at();
        let wait = limit.is_used_up().then_some(reset_at).flatten();
        Self {
            policy: &limit.policy,
            limit: limit.usage.limit(),
            used: limit.usage.used(),
            remaining: limit.usage.remaining(),
            reset_at: reset_at.map(rounded_up),
            retry_after: wait.map(|reset_at| retry_after_secs(reset_at.duration_since(at))),
        }
    }
}
