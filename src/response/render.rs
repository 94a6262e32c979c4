//! Rendering of denials: [`Render`].

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response};

use super::grpc::{Dialect, Grpc};
use super::{Denial, JsonEnvelope, finish};
use crate::catch_panic::catch_panic;
use crate::headers::{HeaderStyle, Report, annotate};

/// Renders denials as responses.
///
/// Called once for each rejected request. An attacker can cause any number of them, so a renderer
/// should not block, lock or log. [`finish`] adds the headers of every denial that the renderer has
/// not set; rate-limit headers are added afterwards.
///
/// A closure is a renderer, too: [`render_with`].
pub trait Render: fmt::Debug + Send + Sync + 'static {
    /// Returns the response to a rejected request.
    fn render(&self, denial: &Denial<'_>) -> Response<Bytes>;

    /// Returns the response with all its headers: those that [`finish`] adds, and the rate limit
    /// headers of `style`. The layer calls this method.
    fn respond(&self, denial: &Denial<'_>, style: HeaderStyle) -> Response<Bytes> {
        let mut response = self.render(denial);
        finish(&mut response, denial);
        if let Some(binding) = denial.binding() {
            let report = Report::new(*binding, denial.at());
            let quotas = denial.quotas().iter().copied();
            annotate(style, response.headers_mut(), &report, quotas);
        }
        response
    }
}

/// Returns the response of a renderer, or the default one if the renderer panics.
pub(crate) fn respond(
    renderer: &dyn Render,
    style: HeaderStyle,
    denial: &Denial<'_>,
) -> Response<Bytes> {
    let response = catch_panic(|| renderer.respond(denial, style));
    let mut response = response.unwrap_or_else(|| JsonEnvelope.respond(denial, style));
    // Over HTTP/2, hyper sends the body also in response to HEAD, which clients treat as an
    // error. The headers, including the length, are those of GET.
    if denial.head().method() == Method::HEAD {
        *response.body_mut() = Bytes::new();
    }
    response
}

/// Forwards to the shared renderer.
impl<R: Render + ?Sized> Render for Arc<R> {
    fn render(&self, denial: &Denial<'_>) -> Response<Bytes> {
        (**self).render(denial)
    }

    fn respond(&self, denial: &Denial<'_>, style: HeaderStyle) -> Response<Bytes> {
        (**self).respond(denial, style)
    }
}

/// Creates a renderer from a closure. The body is a string, a vector or [`Bytes`].
///
/// ```
/// use http::Response;
/// use tollgate::response::render_with;
///
/// let plain = render_with(|denial| {
///     let mut response = Response::new(denial.message());
///     *response.status_mut() = denial.status();
///     response
/// });
/// # let _ = plain;
/// ```
pub fn render_with<F, B>(render: F) -> RenderFn<F>
where
    F: Fn(&Denial<'_>) -> Response<B> + Send + Sync + 'static,
    B: Into<Bytes>,
{
    RenderFn(render)
}

/// Renderer that calls a closure: [`render_with`].
#[derive(Clone, Copy)]
pub struct RenderFn<F>(F);

impl<F, B> Render for RenderFn<F>
where
    F: Fn(&Denial<'_>) -> Response<B> + Send + Sync + 'static,
    B: Into<Bytes>,
{
    fn render(&self, denial: &Denial<'_>) -> Response<Bytes> {
        (self.0)(denial).map(Into::into)
    }
}

impl<F> fmt::Debug for RenderFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RenderFn(…)")
    }
}

/// Default renderer: renders denials of gRPC requests, recognised by their content type, with
/// [`Grpc`], and all others with another renderer.
///
/// ```
/// use http::Request;
/// use tollgate::response::{Auto, Denial, ProblemJson, Render};
/// use tollgate::{RequestHead, Timestamp};
///
/// let auto = Auto::or(ProblemJson);
/// let content_type = |sent: &str| {
///     let request = Request::post("/").header("content-type", sent).body(()).unwrap();
///     let denial = Denial::unauthorized(RequestHead::of(&request), Timestamp::EPOCH);
///     auto.render(&denial).headers()["content-type"].clone()
/// };
/// assert_eq!(content_type("application/grpc+proto"), "application/grpc");
/// assert_eq!(content_type("application/json"), "application/problem+json");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Auto<R = JsonEnvelope> {
    grpc: Grpc,
    otherwise: R,
}

impl Auto {
    /// Creates a renderer that uses [`JsonEnvelope`] for requests that are not gRPC.
    #[must_use]
    pub const fn new() -> Self {
        Self::or(JsonEnvelope)
    }
}

impl<R> Auto<R> {
    /// Creates a renderer that uses `otherwise` for requests that are not gRPC.
    #[must_use]
    pub const fn or(otherwise: R) -> Self {
        Self {
            grpc: Grpc::new(),
            otherwise,
        }
    }

    /// Sets the renderer of gRPC requests.
    #[must_use]
    pub fn with_grpc(mut self, grpc: Grpc) -> Self {
        self.grpc = grpc;
        self
    }
}

impl<R: Render> Render for Auto<R> {
    fn render(&self, denial: &Denial<'_>) -> Response<Bytes> {
        match Dialect::of(denial.head().headers()) {
            Some(_) => self.grpc.render(denial),
            None => self.otherwise.render(denial),
        }
    }

    fn respond(&self, denial: &Denial<'_>, style: HeaderStyle) -> Response<Bytes> {
        match Dialect::of(denial.head().headers()) {
            Some(_) => self.grpc.respond(denial, style),
            None => self.otherwise.respond(denial, style),
        }
    }
}
