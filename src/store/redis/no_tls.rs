//! Stands for `tls.rs` where the feature `redis-tls` is off.

use std::io;

use tokio::net::TcpStream;

use crate::error::Invalid;

/// There is none of these.
#[derive(Clone)]
pub(super) enum Tls {}

impl Tls {
    pub(super) fn new(_: Option<&[u8]>) -> Result<Self, Invalid> {
        let expected = "redis:// without TLS, or the feature `redis-tls` of this crate";
        Err(Invalid::new("redis url", "rediss://", expected))
    }

    #[expect(clippy::unused_async, reason = "as the other one")]
    pub(super) async fn secure(&self, _: &str, _: TcpStream) -> io::Result<TcpStream> {
        match *self {}
    }
}
