//! Denials of a [`Limiter`] as responses of a handler: [`DenialResponder`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::IntoResponse;
use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};

use crate::decision::Decision;
use crate::error::Error;
use crate::extract::MissingRateLimitLayer;
use crate::head::RequestHead;
use crate::headers::{HeaderStyle, QuotaName, QuotaUsage};
use crate::key::{Subject, plain_label};
use crate::limiter::Limiter;
use crate::pipeline::{Charge, Snapshot, UNAVAILABLE_FOR};
use crate::response::{Auto, Denial, Render, respond};

/// Turns denials of a [`Limiter`] into the response that the layer gives to its own denials: renderer,
/// rate-limit headers, `Retry-After` with its jitter, and request id are those of the layer.
///
/// An extractor for handlers behind a layer that was built with
/// [`insert_extensions`](crate::RateLimitLayerBuilder::insert_extensions). Extracting it copies the head
/// of the request.
///
/// ```
/// use axum::extract::State;
/// use axum::{Router, routing::post};
/// use tollgate::{DenialResponder, Limiter, RateLimitLayer, RateLimited};
///
/// async fn export(
///     denials: DenialResponder,
///     State(exports): State<Limiter>,
/// ) -> Result<String, RateLimited> {
///     let (user, rows) = (("user", "alice"), 3);
///     let decision = denials.admit(&exports, user, exports.check(user).cost(rows).await)?;
///     Ok(format!("exported, {} left", decision.remaining()))
/// }
///
/// let exports = Limiter::builder().name("exports").quota("1000/day").build()?;
/// let app: Router = Router::new()
///     .route("/export", post(export))
///     .with_state(exports)
///     .layer(RateLimitLayer::builder("100/minute").insert_extensions().build()?);
/// # Ok::<(), tollgate::ValidationErrors>(())
/// ```
///
/// Without a layer, [`without_layer`](Self::without_layer) gives the default response.
///
/// The layer's statistics and events do not include these denials. A rule of the layer that counts by
/// outcome sees the status of the response.
#[derive(Clone)]
pub struct DenialResponder {
    head: Arc<Request<()>>,
    /// `None` without a layer.
    layer: Option<Arc<Snapshot>>,
}

impl DenialResponder {
    /// Creates a responder with the default renderer and headers: the JSON envelope with
    /// `X-RateLimit-*`, and a gRPC status for gRPC requests.
    ///
    /// ```
    /// use http::request::Parts;
    /// use tollgate::{DenialResponder, Limiter, RateLimited};
    ///
    /// async fn send(mails: Limiter, parts: Parts) -> Result<String, RateLimited> {
    ///     let denials = DenialResponder::without_layer(&parts);
    ///     let decision = denials.admit(&mails, "alice", mails.check("alice").await)?;
    ///     Ok(format!("sent, {} left", decision.remaining()))
    /// }
    /// # let _ = send;
    /// ```
    #[must_use]
    pub fn without_layer(parts: &Parts) -> Self {
        Self::new(parts, None)
    }

    fn new(parts: &Parts, layer: Option<Arc<Snapshot>>) -> Self {
        Self {
            head: Arc::new(Request::from_parts(parts.clone(), ())),
            layer,
        }
    }

    /// Returns the decision if it allows the request.
    ///
    /// `key` is the key of the check. Its dimensions are the first part of the policy name in
    /// headers and body, as in `user:exports:1d`; a key without a dimension is `key`. Quotas that were
    /// [set for one call](crate::CheckBuilder::quotas) change the limit, not the name.
    ///
    /// # Errors
    ///
    /// The response to the denial; status 503 if the limiter has failed.
    pub fn admit<'a>(
        &self,
        limiter: &Limiter,
        key: impl Into<Subject<'a>>,
        outcome: Result<Decision, Error>,
    ) -> Result<Decision, RateLimited> {
        match outcome {
            Ok(decision) if decision.is_allowed() => Ok(decision),
            Ok(decision) => Err(self.denied(limiter, &key.into(), decision)),
            Err(error) => Err(self.failed(limiter, Some(error))),
        }
    }

    fn denied(&self, limiter: &Limiter, key: &Subject<'_>, decision: Decision) -> RateLimited {
        let counter = decision
            .binding()
            .and_then(|index| limiter.counters().get(index));
        let name =
            counter.and_then(|counter| QuotaName::new(&label(key), counter, counter.quota()).ok());
        // A decision of another limiter. Without a name, there is no quota to report.
        let Some(name) = name else {
            return self.failed(limiter, None);
        };
        let usage = QuotaUsage::new(&name, *decision.usage());
        let layer = self.layer.as_deref();
        let jitter = layer.map_or(Duration::ZERO, Snapshot::retry_after_jitter);
        let head = RequestHead::of(&*self.head);
        let denial = Denial::limited(head, usage, decision.at()).with_jitter(jitter);
        let mut rejected = self.respond(&denial, None);
        let denied = &mut *rejected.denied;
        denied.response.extensions_mut().insert(decision.clone());
        denied.decision = Some(decision);
        rejected
    }

    fn failed(&self, limiter: &Limiter, error: Option<Error>) -> RateLimited {
        let head = RequestHead::of(&*self.head);
        let denial = Denial::unavailable(head, UNAVAILABLE_FOR, limiter.wall_now());
        self.respond(&denial, error)
    }

    fn respond(&self, denial: &Denial<'_>, error: Option<Error>) -> RateLimited {
        let plain = Auto::new();
        let (renderer, style): (&dyn Render, _) = match &self.layer {
            Some(layer) => (layer.renderer(), layer.style()),
            None => (&plain, HeaderStyle::default()),
        };
        let denied = DeniedCheck {
            response: respond(renderer, style, denial),
            message: denial.message(),
            decision: None,
            error,
        };
        RateLimited {
            denied: Box::new(denied),
        }
    }
}

/// Returns the label of the dimensions in policy names: `user`, `group+user`, `all`.
fn label(key: &Subject<'_>) -> String {
    let names: Vec<&str> = key.dimensions().map(|(name, _)| name).collect();
    let label = match &*names {
        [] => "all".to_owned(),
        [""] => "key".to_owned(),
        names => names.join("+"),
    };
    plain_label(&label).to_owned()
}

/// Reads the extensions of the request; see `RateLimitLayerBuilder::insert_extensions`.
impl<S: Send + Sync> FromRequestParts<S> for DenialResponder {
    type Rejection = MissingRateLimitLayer;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, MissingRateLimitLayer> {
        let charge = parts.extensions.get::<Charge>();
        let layer = charge.map(|charge| Arc::clone(charge.snapshot()));
        let layer = layer.ok_or(MissingRateLimitLayer)?;
        Ok(Self::new(parts, Some(layer)))
    }
}

/// Prints method and path only. Headers can contain secrets.
impl fmt::Debug for DenialResponder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DenialResponder")
            .field("head", &RequestHead::of(&*self.head))
            .field("has_layer", &self.layer.is_some())
            .finish()
    }
}

/// A request that a [`Limiter`] denies, with the response to it: the error of a handler.
///
/// Created by [`DenialResponder::admit`].
pub struct RateLimited {
    /// Boxed, so that a `Result` with this error is small.
    denied: Box<DeniedCheck>,
}

struct DeniedCheck {
    response: Response<Bytes>,
    message: String,
    decision: Option<Decision>,
    error: Option<Error>,
}

impl RateLimited {
    /// Returns the denial; `None` if the limiter has failed.
    #[must_use]
    pub const fn decision(&self) -> Option<&Decision> {
        self.denied.decision.as_ref()
    }

    /// Returns the response.
    #[must_use]
    pub const fn response(&self) -> &Response<Bytes> {
        &self.denied.response
    }
}

/// The message of the response.
impl fmt::Display for RateLimited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.denied.message)
    }
}

impl fmt::Debug for RateLimited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let denied = &*self.denied;
        f.debug_struct("RateLimited")
            .field("status", &denied.response.status())
            .field("message", &denied.message)
            .field("decision", &denied.decision)
            .field("error", &denied.error)
            .finish()
    }
}

/// The source is the error of the limiter, if it has failed.
impl std::error::Error for RateLimited {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.denied.error.as_ref().map(|error| error as _)
    }
}

impl From<RateLimited> for Response<Bytes> {
    fn from(rejected: RateLimited) -> Self {
        rejected.denied.response
    }
}

impl IntoResponse for RateLimited {
    fn into_response(self) -> axum::response::Response {
        Response::<Bytes>::from(self).map(Body::from)
    }
}
