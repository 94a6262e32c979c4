//! Builder of the admin router.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::api_error::ApiError;
use super::audit::{self, ActorFn, AuditAction};
use super::auth::{AdminToken, TokenAuth};
use super::dashboard_page::DashboardPage;
use super::operator::{AdminRole, Operator};
use super::{api, json};
use crate::catch_panic::catch_panic;
use crate::error::{Error, ValidationError, ValidationErrors};
use crate::head::RequestHead;
use crate::layer::RateLimitLayer;
use crate::pipeline::RequestPipeline;
use crate::quota::{IntoQuota, Quota};
use crate::response::RequestId;

/// Builder of the admin API and the dashboard; see [the module](super).
///
/// ```
/// use axum::Router;
/// use tollgate::RateLimitLayer;
/// use tollgate::admin::{Admin, AdminRole};
///
/// let limits = RateLimitLayer::new("100/minute")?;
/// let admin = Admin::new(&limits)
///     .token("alice", AdminRole::Write, "correct-horse-battery-staple")
///     .token("grafana", AdminRole::Read, "another-secret-for-one-reader")
///     .router()?;
/// let app: Router = Router::new().nest_service("/admin", admin);
/// # let _ = app;
/// # Ok::<(), tollgate::Error>(())
/// ```
#[must_use]
pub struct Admin {
    layer: RateLimitLayer,
    access: Access,
    failed_auth_quota: Result<Quota, ValidationError>,
    actor: Option<Box<ActorFn>>,
}

/// Required credential.
enum Access {
    /// Not empty when the router is built.
    Tokens(Vec<Result<AdminToken, ValidationError>>),
    Open,
}

impl Admin {
    /// Returns a builder for this layer. At least one [token](Self::token) is required.
    pub fn new(layer: &RateLimitLayer) -> Self {
        Self {
            layer: layer.clone(),
            access: Access::Tokens(Vec::new()),
            failed_auth_quota: Quota::per_minute(10),
            actor: None,
        }
    }

    /// Adds the token of an operator or a program, which sends it as `Authorization: Bearer <secret>`.
    /// Audit events have its name, unless [`actor_with`](Self::actor_with) returns another.
    ///
    /// `name` has 1 to 64 visible ASCII characters, `secret` at least 8, better 32 random ones. Only a
    /// digest of the secret is kept. Names and secrets must differ between tokens.
    pub fn token(
        mut self,
        name: impl AsRef<str>,
        role: AdminRole,
        secret: impl AsRef<str>,
    ) -> Self {
        self.add(AdminToken::named(name.as_ref(), role, secret.as_ref()));
        self
    }

    /// Adds one token without a name, with the role [`Write`](AdminRole::Write), for all operators.
    pub fn shared_token(mut self, secret: impl AsRef<str>) -> Self {
        self.add(AdminToken::shared(secret.as_ref()));
        self
    }

    fn add(&mut self, token: Result<AdminToken, ValidationError>) {
        if let Access::Tokens(tokens) = &mut self.access {
            tokens.push(token);
        } else {
            self.access = Access::Tokens(vec![token]);
        }
    }

    /// Accepts every request: a client that can reach the router can change all limits. Use it only
    /// behind an authentication of your own.
    pub fn without_token_insecure(mut self) -> Self {
        self.access = Access::Open;
        self
    }

    /// How many wrong tokens one client IP may send. Default: `10/minute`. Counted in the memory of
    /// each process.
    ///
    /// Further wrong tokens get 429. The right token is accepted at any time.
    pub fn failed_auth_quota(mut self, quota: impl IntoQuota) -> Self {
        let quota = quota.into_quota();
        self.failed_auth_quota = quota.map_err(|wrong| wrong.within("failed_auth_quota"));
        self
    }

    /// Returns the name of the operator for audit events: from a header of your proxy, or from an
    /// extension of your authentication.
    pub fn actor_with(
        mut self,
        closure: impl Fn(&RequestHead<'_>) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.actor = Some(Box::new(closure));
        self
    }

    /// Builds the router. Returns all invalid settings. Nest it [as a service](Router::nest_service), so
    /// that `/admin/` is `/admin`, and outside of the layer, so that used-up limits do not lock
    /// operators out.
    pub fn router(self) -> Result<Router, Error> {
        let mut problems = ValidationErrors::default();
        let tokens = match self.access {
            Access::Open => None,
            Access::Tokens(tokens) => {
                if tokens.is_empty() {
                    let expected = "`token(…)`; or `without_token_insecure()` behind another \
                                    authentication";
                    problems.push(ValidationError::new("admin token", "nothing", expected));
                }
                Some(distinct(tokens, &mut problems))
            }
        };
        let wrong = problems.note(self.failed_auth_quota);
        let wrong = problems.or(wrong.unwrap_or_else(Quota::unlimited))?;
        let state = AdminState {
            dashboard: DashboardPage::new(tokens.is_none()),
            auth: TokenAuth::new(tokens, wrong, self.layer.pipeline())?,
            layer: self.layer,
            actor: self.actor,
        };
        let state = Arc::new(state);
        let api = api::routes().layer(from_fn_with_state(Arc::clone(&state), authorize));
        let routes = Router::new()
            .route("/", get(dashboard))
            .nest("/api", api)
            .fallback(async || ApiError::not_found())
            .method_not_allowed_fallback(async || ApiError::wrong_method("GET, HEAD"))
            .layer(from_fn_with_state(Arc::clone(&state), finish_response));
        Ok(routes.with_state(state))
    }
}

/// Returns the valid tokens, and adds the errors of the others.
fn distinct(
    tokens: Vec<Result<AdminToken, ValidationError>>,
    problems: &mut ValidationErrors,
) -> Vec<AdminToken> {
    let mut valid: Vec<AdminToken> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let token = token.and_then(|token| {
            let mut others = valid.iter();
            others.try_for_each(|other| token.differs_from(other))?;
            Ok(token)
        });
        valid.extend(problems.note(token));
    }
    valid
}

/// Hides the tokens.
impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin")
            .field("layer", &self.layer)
            .field("is_open", &matches!(self.access, Access::Open))
            .finish_non_exhaustive()
    }
}

/// State of the admin router.
pub(super) struct AdminState {
    pub(super) layer: RateLimitLayer,
    dashboard: DashboardPage,
    auth: TokenAuth,
    actor: Option<Box<ActorFn>>,
}

impl AdminState {
    pub(super) fn pipeline(&self) -> &RequestPipeline {
        self.layer.pipeline()
    }

    /// Logs an audit event with the operator and the request id. The operator is the result of
    /// [`Admin::actor_with`], otherwise the name of the token.
    pub(super) fn audit(&self, head: &RequestHead<'_>, action: &AuditAction<'_>) {
        let actor = self.actor.as_ref();
        let actor = actor.and_then(|actor| catch_panic(|| actor(head)).flatten());
        let actor = actor.or_else(|| {
            let operator = head.extension::<Operator>()?;
            operator.name.as_deref().map(str::to_owned)
        });
        let id = RequestId::of(head.headers());
        audit::log(actor.as_deref(), action, id.as_str());
    }
}

async fn dashboard(State(state): State<Arc<AdminState>>) -> Response {
    state.dashboard.show()
}

/// Rejects requests without a valid token.
async fn authorize(
    State(state): State<Arc<AdminState>>,
    mut request: Request,
    next: Next,
) -> Response {
    let origin = state.pipeline().origin_of(&RequestHead::of(&request));
    match state.auth.authorize(request.headers(), origin) {
        Ok(operator) => {
            request.extensions_mut().insert(operator);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// Adds the request id and the security headers, and renders errors.
async fn finish_response(
    State(state): State<Arc<AdminState>>,
    mut request: Request,
    next: Next,
) -> Response {
    // One id for the response and the audit event.
    let id = RequestId::of(request.headers()).as_str().to_owned();
    if let Ok(value) = id.parse() {
        request.headers_mut().insert("x-request-id", value);
    }
    let mut response = next.run(request).await;
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        response = error.render(&id, state.pipeline().wall_now());
    }
    if let Ok(value) = id.parse() {
        response.headers_mut().insert("x-request-id", value);
    }
    json::protect(response.headers_mut());
    response
}
