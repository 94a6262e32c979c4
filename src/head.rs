//! What is known of a request before its body: [`RequestHead`].

use std::fmt;

use http::header::AsHeaderName;
use http::{Extensions, HeaderMap, Method, Request, Uri};

/// The head of a request: method, URI, headers and extensions, borrowed.
///
/// Closures that say who is asking, what a request costs or whether it is exempt look at this.
/// The body is never looked at.
///
/// ```
/// use http::Request;
/// use tollgate::RequestHead;
///
/// let request = Request::get("/v1/items?page=2").header("x-plan", "team").body(()).unwrap();
/// let head = RequestHead::of(&request);
/// assert_eq!(head.path(), "/v1/items");
/// assert_eq!(head.header("x-plan"), Some("team"));
/// ```
#[derive(Clone, Copy)]
pub struct RequestHead<'a> {
    method: &'a Method,
    uri: &'a Uri,
    headers: &'a HeaderMap,
    extensions: &'a Extensions,
}

impl<'a> RequestHead<'a> {
    /// The head of `request`.
    #[must_use]
    pub fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }

    /// The method.
    #[must_use]
    pub const fn method(&self) -> &'a Method {
        self.method
    }

    /// The URI as this layer sees it: a router may have taken a prefix off.
    #[must_use]
    pub const fn uri(&self) -> &'a Uri {
        self.uri
    }

    /// The path of the URI.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.uri.path()
    }

    /// All headers.
    #[must_use]
    pub const fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// The first value of a header, if it is visible ASCII.
    #[must_use]
    pub fn header(&self, name: impl AsHeaderName) -> Option<&'a str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// All extensions.
    #[must_use]
    pub const fn extensions(&self) -> &'a Extensions {
        self.extensions
    }

    /// The extension of type `T`, if some layer before this one has put it there.
    #[must_use]
    pub fn extension<T: Clone + Send + Sync + 'static>(&self) -> Option<&'a T> {
        self.extensions.get()
    }
}

/// Shows method and path; headers may hold secrets.
impl fmt::Debug for RequestHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestHead({} {})", self.method, self.path())
    }
}
