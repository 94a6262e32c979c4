//! Builds the described applications with axum and tower-http.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::extract::MatchedPath;
use axum::http::{HeaderValue, Request, Response};
use axum::routing::{MethodFilter, MethodRouter, any, on};
use tollgate::RateLimitLayer;
use tower::util::BoxCloneSyncService;
use tower::{Layer, service_fn};
use tower_http::normalize_path::NormalizePath;

use super::tree::{App, Handler, Node, Position, Server, Slash, Tree};
use super::{plain, policy};

pub(super) type Service = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// The response of a handler.
pub(super) fn ran(id: usize) -> Response<Body> {
    let id = HeaderValue::from(id);
    Response::builder()
        .header("x-ran", id)
        .body(Body::empty())
        .unwrap()
}

pub(super) fn build(app: &App) -> Service {
    let limits = policy::layer(&app.rules);
    let (position, tree) = match &app.server {
        Server::Axum(position, tree) => (*position, tree),
        Server::Plain(normalization, served) => {
            let service = plain::service(*normalization, served, &app.handlers);
            return around(service, &limits);
        }
    };
    let in_mounts = match position {
        Position::InMounts => Some(Mounted::Inside),
        Position::AroundMounts => Some(Mounted::Around),
        _ => None,
    };
    let builder = Builder {
        handlers: &app.handlers,
        limits: &limits,
    };
    let router = builder.router(tree, in_mounts);
    match position {
        Position::Inside => boxed(inside(router, &limits)),
        Position::OnRoutes if router.has_routes() => {
            boxed(router.route_layer(limits).route_layer(Marker))
        }
        Position::OnRoutes | Position::InMounts | Position::AroundMounts => boxed(router),
        Position::Outside => around(router, &limits),
        Position::OutsideNormalized(slash) => around(normalized(router, slash), &limits),
        Position::NormalizedOutside(slash) => normalized(around(router, &limits), slash),
        Position::NormalizedInside(slash) => normalized(inside(router, &limits), slash),
        Position::BehindFallback => boxed(Router::new().fallback_service(around(router, &limits))),
    }
}

fn boxed<S>(service: S) -> Service
where
    S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    BoxCloneSyncService::new(service)
}

fn inside(router: Router, limits: &RateLimitLayer) -> Router {
    router.layer(limits.clone()).layer(Marker)
}

fn around<S>(service: S, limits: &RateLimitLayer) -> Service
where
    S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    boxed(Marker.layer(limits.layer(service)))
}

fn normalized<S>(service: S, slash: Slash) -> Service
where
    S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    match slash {
        Slash::Trim => boxed(NormalizePath::trim_trailing_slash(service)),
        Slash::Append => boxed(NormalizePath::append_trailing_slash(service)),
    }
}

/// Where the layer is in a nested or mounted router.
#[derive(Clone, Copy)]
enum Mounted {
    Inside,
    Around,
}

struct Builder<'a> {
    handlers: &'a [Handler],
    limits: &'a RateLimitLayer,
}

impl Builder<'_> {
    /// `mounted` is where routers in this one get the layer. It applies once on each way down, so
    /// that no request is charged twice.
    fn router(&self, tree: &Tree, mounted: Option<Mounted>) -> Router {
        let mut router = Router::new();
        for node in &tree.nodes {
            router = match node {
                Node::Route(path, handlers) => router.route(path, self.methods(handlers)),
                Node::Service(path, id) => router.route_service(path, handler(*id)),
                Node::Nest(path, inner) => match mounted {
                    Some(Mounted::Inside) => {
                        router.nest(path, inside(self.router(inner, None), self.limits))
                    }
                    _ => router.nest(path, self.router(inner, mounted)),
                },
                Node::Merge(inner) => router.merge(self.router(inner, mounted)),
                Node::MountHandler(path, id) => match mounted {
                    Some(_) => router.nest_service(path, around(handler(*id), self.limits)),
                    None => router.nest_service(path, handler(*id)),
                },
                Node::Mount(path, slash, inner) => {
                    let inner = self.router(inner, None);
                    match (mounted, slash) {
                        (mounted, Some(slash)) => {
                            router.nest_service(path, self.wrapped(inner, *slash, mounted))
                        }
                        (None, None) => router.nest_service(path, inner),
                        (Some(Mounted::Inside), None) => {
                            router.nest_service(path, inside(inner, self.limits))
                        }
                        (Some(Mounted::Around), None) => {
                            router.nest_service(path, around(inner, self.limits))
                        }
                    }
                }
                Node::Wrapped(path, slash, inner) => {
                    let inner = self.router(inner, None);
                    let inner = if path.is_empty() {
                        inner
                    } else {
                        Router::new().nest(path, inner)
                    };
                    let service = self.wrapped(inner, *slash, mounted);
                    router.route_service(&format!("{path}/{{*rest}}"), service)
                }
            };
        }
        match tree.fallback {
            Some(id) => router.fallback_service(handler(id)),
            None => router,
        }
    }

    fn wrapped(&self, router: Router, slash: Slash, mounted: Option<Mounted>) -> Service {
        match mounted {
            None => normalized(router, slash),
            Some(Mounted::Inside) => normalized(inside(router, self.limits), slash),
            Some(Mounted::Around) => around(normalized(router, slash), self.limits),
        }
    }

    fn methods(&self, handlers: &[usize]) -> MethodRouter {
        let mut methods = MethodRouter::new();
        for &id in handlers {
            methods = methods.merge(match self.handlers[id].method {
                Some("GET") => on(MethodFilter::GET, move || std::future::ready(ran(id))),
                Some("POST") => on(MethodFilter::POST, move || std::future::ready(ran(id))),
                _ => any(move || std::future::ready(ran(id))),
            });
        }
        methods
    }
}

fn handler(id: usize) -> Service {
    boxed(service_fn(move |_| std::future::ready(Ok(ran(id)))))
}

/// A layer around the rate limit layer. It adds headers that contain the layers that
/// the request passed, and the pattern in `MatchedPath`.
#[derive(Clone, Copy)]
struct Marker;

impl<S> Layer<S> for Marker {
    type Service = Marked<S>;

    fn layer(&self, inner: S) -> Marked<S> {
        Marked(inner)
    }
}

#[derive(Clone)]
struct Marked<S>(S);

impl<S> tower::Service<Request<Body>> for Marked<S>
where
    S: tower::Service<Request<Body>, Error = Infallible>,
    S::Response: axum::response::IntoResponse,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let pattern = request.extensions().get::<MatchedPath>();
        let pattern = pattern.map(|pattern| HeaderValue::from_str(pattern.as_str()).unwrap());
        let response = self.0.call(request);
        Box::pin(async move {
            let mut response = axum::response::IntoResponse::into_response(response.await?);
            let headers = response.headers_mut();
            headers.append("x-limited", HeaderValue::from_static("yes"));
            if let Some(pattern) = pattern {
                headers.insert("x-matched-path", pattern);
            }
            Ok(response)
        })
    }
}
