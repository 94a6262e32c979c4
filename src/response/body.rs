//! Body types of denials: [`DenialBody`].

use bytes::Bytes;
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use http_body_util::{BodyExt, Either, Full};

/// Response body type that can hold a rendered denial.
///
/// The layer does not change the body type of the inner service, so it creates a body of that type
/// from bytes. Implemented for common body types. For your own:
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
/// Not implemented for `String`: a renderer can return bytes that are not UTF-8.
pub trait DenialBody {
    /// Creates a body from bytes.
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

/// Creates the left variant.
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
