//! Bodies that a denial can have: [`DenialBody`].

use bytes::Bytes;
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use http_body_util::{BodyExt, Either, Full};

/// A body type of responses that can hold a rendered denial.
///
/// The layer changes neither the body nor the error type of the service it is around, so it
/// must be able to make such a body from bytes. Implemented for the usual ones; for your own it
/// is three lines:
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::Full;
/// use tollgate::response::DenialBody;
///
/// struct MyBody(Full<Bytes>);
///
/// impl DenialBody for MyBody {
///     fn from_bytes(bytes: Bytes) -> Self {
///         Self(Full::new(bytes))
///     }
/// }
/// ```
///
/// Not for `String`: a renderer may make bytes that are no text.
pub trait DenialBody {
    /// A body of these bytes.
    fn from_bytes(bytes: Bytes) -> Self;
}

impl DenialBody for Bytes {
    fn from_bytes(bytes: Bytes) -> Self {
        bytes
    }
}

impl DenialBody for Vec<u8> {
    fn from_bytes(bytes: Bytes) -> Self {
        bytes.into()
    }
}

impl DenialBody for Full<Bytes> {
    fn from_bytes(bytes: Bytes) -> Self {
        Self::new(bytes)
    }
}

impl<E: 'static> DenialBody for BoxBody<Bytes, E> {
    fn from_bytes(bytes: Bytes) -> Self {
        Full::new(bytes).map_err(|never| match never {}).boxed()
    }
}

impl<E: 'static> DenialBody for UnsyncBoxBody<Bytes, E> {
    fn from_bytes(bytes: Bytes) -> Self {
        Full::new(bytes)
            .map_err(|never| match never {})
            .boxed_unsync()
    }
}

/// The left one.
impl<L: DenialBody, R> DenialBody for Either<L, R> {
    fn from_bytes(bytes: Bytes) -> Self {
        Self::Left(L::from_bytes(bytes))
    }
}

#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
impl DenialBody for axum::body::Body {
    fn from_bytes(bytes: Bytes) -> Self {
        Self::from(bytes)
    }
}

#[cfg(feature = "grpc")]
#[cfg_attr(docsrs, doc(cfg(feature = "grpc")))]
impl DenialBody for tonic::body::Body {
    fn from_bytes(bytes: Bytes) -> Self {
        if bytes.is_empty() {
            Self::empty()
        } else {
            Self::new(Full::new(bytes))
        }
    }
}
