//! Replaces `tls.rs` if the feature `redis-tls` is off.

use std::future::{Ready, ready};
use std::io;

use tokio::net::TcpStream;

use crate::error::ValidationError;

pub(super) use self::TlsDisabled as Tls;

/// Replaces the TLS connector. Never constructed.
#[derive(Clone)]
pub(super) struct TlsDisabled(());

impl TlsDisabled {
    pub(super) fn new(_: Option<&[u8]>) -> Result<Self, ValidationError> {
        let expected = "redis:// without TLS, or the feature `redis-tls` of this crate";
        Err(ValidationError::new("redis url", "rediss://", expected))
    }

    #[expect(clippy::unused_self, reason = "same signature as in tls.rs")]
    pub(super) fn secure(&self, _: &str, _: TcpStream) -> Ready<io::Result<TcpStream>> {
        ready(Err(io::ErrorKind::Unsupported.into()))
    }
}
