//! Request to explain.

use std::fmt;
use std::net::IpAddr;

use http::{Method, Request};

use crate::clock::Timestamp;
use crate::error::ValidationError;
use crate::identity_types::Identity;
use crate::network;

/// Request to explain: method, path, identity, client IP and time; see
/// [`Policy::explain`](crate::policy::Policy::explain).
///
/// ```
/// use tollgate::Identity;
/// use tollgate::policy::ExplainRequest;
///
/// let explain_request = ExplainRequest::new("GET /v1/secrets/42")?
///     .identity(Identity::user("alice").tier("team"))
///     .ip([203, 0, 113, 9]);
/// # let _ = explain_request;
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
///
/// If a closure of the policy reads headers, or if the request is a preflight, convert a
/// [`Request`](#impl-From<Request<B>>-for-ExplainRequest) with its headers.
#[derive(Clone)]
#[must_use]
pub struct ExplainRequest {
    pub(super) request: Request<()>,
    pub(super) identity: Option<Identity>,
    pub(super) ip: Option<IpAddr>,
    pub(super) counted_as: Option<IpAddr>,
    pub(super) at: Option<Timestamp>,
}

impl ExplainRequest {
    /// Parses a method and a path: `GET /v1/secrets/42`.
    ///
    /// # Errors
    ///
    /// Returns an error if the method is not in capitals, or if the path does not begin with `/` or
    /// is not a valid URI.
    pub fn new(request: &str) -> Result<Self, ValidationError> {
        let error = |expected| ValidationError::new("request", request.escape_debug(), expected);
        let method_and_path = "a method and a path, such as `GET /v1/secrets/42`";
        let (method, path) = request
            .trim()
            .split_once(char::is_whitespace)
            .ok_or_else(|| error(method_and_path))?;
        if !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(error("a method in capitals, such as `GET`"));
        }
        let path = path.trim_start();
        if !path.starts_with('/') {
            return Err(error("a path that begins with `/`, after the method"));
        }
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| error(method_and_path))?;
        let request = Request::builder().method(method).uri(path).body(());
        let request =
            request.map_err(|_| error("a path as clients send it: without spaces, encoded"))?;
        Ok(request.into())
    }

    /// Sets the identity of the caller. Default: unauthenticated.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Sets the client IP. Default: unknown.
    pub fn ip(mut self, address: impl Into<IpAddr>) -> Self {
        self.ip = Some(network::fold(address.into()));
        self
    }

    /// Sets the network that counts as one client. Default: the client IP.
    ///
    /// Layers count IPv6 addresses [by /64](crate::identity::ClientIp) unless configured otherwise.
    pub fn counted_as(mut self, group: impl Into<IpAddr>) -> Self {
        self.counted_as = Some(network::fold(group.into()));
        self
    }

    /// Sets the time of the request. Default: after any
    /// [maintenance](crate::policy::PolicyBuilder::disabled_until).
    pub fn at(mut self, instant: Timestamp) -> Self {
        self.at = Some(instant);
        self
    }
}

/// Takes the head of a request and drops its body.
impl<B> From<Request<B>> for ExplainRequest {
    fn from(request: Request<B>) -> Self {
        Self {
            request: request.map(drop),
            identity: None,
            ip: None,
            counted_as: None,
            at: None,
        }
    }
}

/// Shows method and path, but neither the client IP nor the values of the identity.
impl fmt::Debug for ExplainRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExplainRequest")
            .field("method", self.request.method())
            .field("path", &self.request.uri().path())
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
