//! What is asked.

use std::fmt;
use std::net::IpAddr;

use http::{Method, Request};

use crate::clock::Timestamp;
use crate::error::ValidationError;
use crate::identity_types::Identity;
use crate::network;

/// A request to be explained: what is asked for, by whom, from where and when.
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
/// Where headers matter, because closures look at them or because it is a preflight, make it
/// [from a whole request](#impl-From<Request<B>>-for-ExplainRequest).
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
    /// A request as it is written: `GET /v1/secrets/42`.
    pub fn new(request: &str) -> Result<Self, ValidationError> {
        let refuse = |expected| ValidationError::new("request", request.escape_debug(), expected);
        let like = "a method and a path, such as `GET /v1/secrets/42`";
        let (method, path) = request
            .trim()
            .split_once(char::is_whitespace)
            .ok_or_else(|| refuse(like))?;
        if !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(refuse("a method in capitals, such as `GET`"));
        }
        let path = path.trim_start();
        if !path.starts_with('/') {
            return Err(refuse("a path that begins with `/`, after the method"));
        }
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| refuse(like))?;
        let request = Request::builder().method(method).uri(path).body(());
        let request =
            request.map_err(|_| refuse("a path as clients send it: without spaces, encoded"))?;
        Ok(request.into())
    }

    /// Who asks. If this is not said, nobody who is known.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// From where. If this is not said, nobody knows.
    pub fn ip(mut self, address: impl Into<IpAddr>) -> Self {
        self.ip = Some(network::fold(address.into()));
        self
    }

    /// The network that counts as one client, where that is not the address itself. By default
    /// layers count IPv6 addresses [by /64](crate::identity::ClientIp).
    pub fn counted_as(mut self, group: impl Into<IpAddr>) -> Self {
        self.counted_as = Some(network::fold(group.into()));
        self
    }

    /// When. If this is not said, after all [maintenance](crate::policy::PolicyBuilder::maintenance_until).
    pub fn at(mut self, instant: Timestamp) -> Self {
        self.at = Some(instant);
        self
    }
}

/// The head of a request, whatever its body.
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

/// Shows what is asked for, and not by whom.
impl fmt::Debug for ExplainRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExplainRequest")
            .field("method", self.request.method())
            .field("path", &self.request.uri().path())
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
