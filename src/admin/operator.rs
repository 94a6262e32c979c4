//! What operators can ask for and change.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::audit::{self, ActorFn, Deed};
use super::page::Page;
use super::refusal::Refusal;
use super::token::{Doorkeeper, Token};
use super::{api, reply};
use crate::catch_panic::catch_panic;
use crate::error::{Error, ValidationError, ValidationErrors};
use crate::head::RequestHead;
use crate::layer::RateLimitLayer;
use crate::pipeline::RequestPipeline;
use crate::quota::{IntoQuota, Quota};
use crate::response::RequestId;

/// The API and the dashboard for operators; see [the module](super).
///
/// ```
/// use axum::Router;
/// use tollgate::RateLimitLayer;
/// use tollgate::admin::Admin;
///
/// let limits = RateLimitLayer::new("100/minute")?;
/// let admin = Admin::new(&limits)
///     .token("correct-horse-battery-staple")
///     .actor_with(|head| head.header("x-forwarded-user").map(str::to_owned))
///     .router()?;
/// let app: Router = Router::new().nest_service("/admin", admin);
/// # let _ = app;
/// # Ok::<(), tollgate::Error>(())
/// ```
#[must_use]
pub struct Admin {
    layer: RateLimitLayer,
    entrance: Entrance,
    failed_auth_quota: Result<Quota, ValidationError>,
    actor: Option<Box<ActorFn>>,
}

/// Who is let in.
enum Entrance {
    /// Nobody has said it.
    Unsaid,
    Token(Result<Token, ValidationError>),
    Open,
}

impl Admin {
    /// For this layer. It needs a [token](Self::token).
    pub fn new(layer: &RateLimitLayer) -> Self {
        Self {
            layer: layer.clone(),
            entrance: Entrance::Unsaid,
            failed_auth_quota: Quota::per_minute(10),
            actor: None,
        }
    }

    /// What operators have to show: `Authorization: Bearer <token>`. At least eight visible
    /// characters; better thirty-two random ones. Only a digest of it is kept.
    pub fn token(mut self, token: impl AsRef<str>) -> Self {
        self.entrance = Entrance::Token(Token::new(token.as_ref()));
        self
    }

    /// Lets everybody in: whoever can reach the router can lift and set all limits. For routers
    /// that stand behind an authentication of your own, and only for those.
    pub fn without_token_insecure(mut self) -> Self {
        self.entrance = Entrance::Open;
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

    /// Who an operator is, for the audit: from a header that your proxy sets, or from what your
    /// authentication has left in the extensions.
    pub fn actor_with(
        mut self,
        closure: impl Fn(&RequestHead<'_>) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.actor = Some(Box::new(closure));
        self
    }

    /// Checks the settings. Put the router into yours [as a service](Router::nest_service), so
    /// that `/admin/` is `/admin`, and outside of the layer: an operator should get in also when
    /// the limits are used up.
    pub fn router(self) -> Result<Router, Error> {
        let mut problems = ValidationErrors::default();
        let token = match self.entrance {
            Entrance::Open => None,
            Entrance::Token(token) => problems.note(token),
            Entrance::Unsaid => {
                let expected = "`token(…)`; or `without_token_insecure()`, where something else \
                                lets operators in";
                problems.push(ValidationError::new("admin token", "nothing", expected));
                None
            }
        };
        let wrong = problems.note(self.failed_auth_quota);
        let wrong = problems.or(wrong.unwrap_or_else(Quota::unlimited))?;
        let desk = Desk {
            page: Page::new(token.is_none()),
            doorkeeper: Doorkeeper::new(token, wrong, self.layer.pipeline())?,
            layer: self.layer,
            actor: self.actor,
        };
        let desk = Arc::new(desk);
        let api = api::routes().layer(from_fn_with_state(Arc::clone(&desk), admit));
        let routes = Router::new()
            .route("/", get(page))
            .nest("/api", api)
            .fallback(async || Refusal::not_found())
            .method_not_allowed_fallback(async || Refusal::wrong_method("GET, HEAD"))
            .layer(from_fn_with_state(Arc::clone(&desk), dress));
        Ok(routes.with_state(desk))
    }
}

/// Shows neither the token nor anything of it.
impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin")
            .field("layer", &self.layer)
            .field("is_open", &matches!(self.entrance, Entrance::Open))
            .finish_non_exhaustive()
    }
}

/// What answers operators.
pub(super) struct Desk {
    pub(super) layer: RateLimitLayer,
    page: Page,
    doorkeeper: Doorkeeper,
    actor: Option<Box<ActorFn>>,
}

impl Desk {
    pub(super) fn pipeline(&self) -> &RequestPipeline {
        self.layer.pipeline()
    }

    /// Leaves an event of what is being done, and for whom it is done.
    pub(super) fn note(&self, head: &RequestHead<'_>, deed: &Deed<'_>) {
        let actor = self.actor.as_ref();
        let actor = actor.and_then(|actor| catch_panic(|| actor(head)).flatten());
        let id = RequestId::of(head.headers());
        audit::note(actor.as_deref(), deed, id.as_str());
    }
}

async fn page(State(desk): State<Arc<Desk>>) -> Response {
    desk.page.show()
}

/// Lets those on who may.
async fn admit(State(desk): State<Arc<Desk>>, request: Request, next: Next) -> Response {
    let origin = desk.pipeline().origin_of(&RequestHead::of(&request));
    match desk.doorkeeper.admit(request.headers(), origin) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// Adds what every answer says, and makes one of every refusal.
async fn dress(State(desk): State<Arc<Desk>>, mut request: Request, next: Next) -> Response {
    // One name for the answer and for the audit.
    let id = RequestId::of(request.headers()).as_str().to_owned();
    if let Ok(value) = id.parse() {
        request.headers_mut().insert("x-request-id", value);
    }
    let mut response = next.run(request).await;
    if let Some(refusal) = response.extensions_mut().remove::<Refusal>() {
        response = refusal.answer(&id, desk.pipeline().wall_now());
    }
    if let Ok(value) = id.parse() {
        response.headers_mut().insert("x-request-id", value);
    }
    reply::protect(response.headers_mut());
    response
}
