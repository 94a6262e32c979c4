//! Request without its body: [`RequestHead`].

use std::fmt;

use http::header::AsHeaderName;
use http::{Extensions, HeaderMap, Method, Request, Uri};

/// Head of a request: method, URI, headers and extensions, borrowed.
///
/// Argument of the closures that return an identity, a cost or an exemption. The body is never read.
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
    /// Returns the head of `request`.
    #[must_use]
    pub fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }

    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> &'a Method {
        self.method
    }

    /// Returns the URI as it reached this layer. A router may have stripped a prefix.
    #[must_use]
    pub const fn uri(&self) -> &'a Uri {
        self.uri
    }

    /// Returns the path of the URI.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.uri.path()
    }

    /// Returns all headers.
    #[must_use]
    pub const fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// Returns the first value of a header, if it is visible ASCII.
    #[must_use]
    pub fn header(&self, name: impl AsHeaderName) -> Option<&'a str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns all extensions.
    #[must_use]
    pub const fn extensions(&self) -> &'a Extensions {
        self.extensions
    }

    /// Returns the extension of type `T`, if an outer layer has inserted one.
    #[must_use]
    pub fn extension<T: Clone + Send + Sync + 'static>(&self) -> Option<&'a T> {
        self.extensions.get()
    }
}

/// Prints method and path only. Headers can contain secrets.
impl fmt::Debug for RequestHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestHead({} {})", self.method, self.path())
    }
}
