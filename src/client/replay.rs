//! Request bodies that can be sent again: [`ReplayBody`].

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::Request;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use http_body_util::{BodyExt as _, Either, Empty, Full};
use pin_project_lite::pin_project;

/// A request body that can be sent again.
///
/// A refused request is retried only if its body can be replayed: bytes can, a stream cannot, a
/// boxed body can if it is empty. Implement it for your own types, and wrap types of other crates
/// in [`SendOnce`]:
///
/// ```
/// use bytes::Bytes;
/// use tollgate::client::ReplayBody;
///
/// enum MyBody {
///     Bytes(Bytes),
///     File(std::fs::File),
/// }
///
/// impl ReplayBody for MyBody {
///     fn replay(&self) -> Option<Self> {
///         match self {
///             Self::Bytes(bytes) => Some(Self::Bytes(bytes.clone())),
///             Self::File(_) => None,
///         }
///     }
/// }
/// ```
pub trait ReplayBody: Sized {
    /// Returns a copy, or `None` if the body cannot be sent again. Called before the body is sent.
    fn replay(&self) -> Option<Self>;
}

macro_rules! replay_by_cloning {
    ($($type:ty),+) => {
        $(impl ReplayBody for $type {
            fn replay(&self) -> Option<Self> {
                Some(self.clone())
            }
        })+
    };
}

replay_by_cloning!((), Bytes, String, Vec<u8>, &'static str, &'static [u8]);

impl<D: Buf + Clone> ReplayBody for Full<D> {
    fn replay(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl<D> ReplayBody for Empty<D> {
    fn replay(&self) -> Option<Self> {
        Some(Self::new())
    }
}

impl<B: ReplayBody> ReplayBody for Option<B> {
    fn replay(&self) -> Option<Self> {
        match self {
            Some(body) => body.replay().map(Some),
            None => Some(None),
        }
    }
}

impl<L: ReplayBody, R: ReplayBody> ReplayBody for Either<L, R> {
    fn replay(&self) -> Option<Self> {
        match self {
            Self::Left(body) => body.replay().map(Self::Left),
            Self::Right(body) => body.replay().map(Self::Right),
        }
    }
}

/// Can be replayed if it is empty.
impl<E: 'static> ReplayBody for BoxBody<Bytes, E> {
    fn replay(&self) -> Option<Self> {
        let empty = || Empty::new().map_err(|never| match never {}).boxed();
        self.is_end_stream().then(empty)
    }
}

/// Can be replayed if it is empty.
impl<E: 'static> ReplayBody for UnsyncBoxBody<Bytes, E> {
    fn replay(&self) -> Option<Self> {
        let empty = || Empty::new().map_err(|never| match never {}).boxed_unsync();
        self.is_end_stream().then(empty)
    }
}

/// Can be replayed if it is empty.
#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
impl ReplayBody for axum::body::Body {
    fn replay(&self) -> Option<Self> {
        self.is_end_stream().then(Self::empty)
    }
}

/// Can be replayed if it is empty.
#[cfg(feature = "grpc")]
#[cfg_attr(docsrs, doc(cfg(feature = "grpc")))]
impl ReplayBody for tonic::body::Body {
    fn replay(&self) -> Option<Self> {
        self.is_end_stream().then(Self::empty)
    }
}

pin_project! {
    /// A body that is never sent again: for types without [`ReplayBody`], such as the body that a proxy
    /// receives.
    #[derive(Clone, Debug, Default)]
    pub struct SendOnce<B> {
        #[pin]
        body: B,
    }
}

impl<B> SendOnce<B> {
    /// Wraps a body.
    pub const fn new(body: B) -> Self {
        Self { body }
    }
}

impl<B> ReplayBody for SendOnce<B> {
    fn replay(&self) -> Option<Self> {
        None
    }
}

impl<B: Body> Body for SendOnce<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns a copy of a request, if its body can be replayed.
pub(super) fn copy<B: ReplayBody>(request: &Request<B>) -> Option<Request<B>> {
    let mut copy = Request::new(request.body().replay()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    copy.headers_mut().clone_from(request.headers());
    copy.extensions_mut().clone_from(request.extensions());
    Some(copy)
}
