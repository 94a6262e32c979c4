//! Detects that the URL and the server disagree about TLS.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Detects a server that uses TLS although the URL does not, or the other way round.
///
/// Neither can be seen on the connection itself. A server with TLS resets a connection without it,
/// as a load balancer without servers does. A server without TLS waits for the end of the client's
/// first message, as a frozen server does. Therefore a second connection sends the first message of
/// the other protocol. It contains no credentials.
///
/// A probe runs in a task. If the attempt to connect ends before the probe, as on a slow network, the
/// next attempt that fails uses its result.
#[derive(Debug, Default)]
pub(super) struct TlsProbe {
    /// Result of the last probe that was completed.
    is_mismatch: bool,
    /// Failed attempts to connect that the result still applies to.
    valid_for: u32,
    /// The running probe, at most one. Returns `None` if it was not completed.
    running: JoinSet<Option<bool>>,
}

impl TlsProbe {
    /// Failed attempts to connect that one result applies to.
    const INTERVAL: u32 = 8;
    /// Time limit of a probe, connecting included. Longer than an attempt to connect, because it can be
    /// used by the next one.
    const WITHIN: Duration = Duration::from_secs(2);
    /// A `ClientHello` without content. A server with TLS replies with an alert.
    const CLIENT_HELLO: &[u8] = &[0x16, 3, 1, 0, 4, 1, 0, 0, 0];
    /// First byte of an alert.
    pub(super) const TLS_ALERT: u8 = 0x15;

    /// Returns whether a server that rejected a connection without TLS expects it.
    pub(super) async fn expects_tls(&mut self, host: &str, port: u16) -> bool {
        let is_alert = |byte| byte == Self::TLS_ALERT;
        self.check(host, port, Self::CLIENT_HELLO, is_alert).await
    }

    /// Returns whether a server that completed no TLS handshake replies without TLS.
    pub(super) async fn expects_plain(&mut self, host: &str, port: u16) -> bool {
        let is_reply = |byte| matches!(byte, b'+' | b'-');
        self.check(host, port, b"PING\r\n", is_reply).await
    }

    /// Returns the last result, or waits for a new one. Dropping the future keeps the probe running.
    async fn check(
        &mut self,
        host: &str,
        port: u16,
        message: &'static [u8],
        is_expected: fn(u8) -> bool,
    ) -> bool {
        if let Some(left) = self.valid_for.checked_sub(1) {
            self.valid_for = left;
            return self.is_mismatch;
        }
        if self.running.is_empty() {
            let host = host.to_owned();
            self.running.spawn(async move {
                let reply = timeout(Self::WITHIN, first_byte(&host, port, message)).await;
                reply.ok()?.ok().map(|byte| byte.is_some_and(is_expected))
            });
        }
        if let Some(Ok(Some(is_mismatch))) = self.running.join_next().await {
            self.is_mismatch = is_mismatch;
            self.valid_for = Self::INTERVAL - 1;
        }
        self.is_mismatch
    }

    /// A connection was opened: client and server agree.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

/// Sends a message on a new connection. Returns the first byte of the reply; `None` if the server closes
/// the connection instead.
async fn first_byte(host: &str, port: u16, message: &[u8]) -> io::Result<Option<u8>> {
    let mut stream = TcpStream::connect((host, port)).await?;
    stream.write_all(message).await?;
    match stream.read_u8().await {
        Ok(byte) => Ok(Some(byte)),
        Err(error) => match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Ok(None),
            _ => Err(error),
        },
    }
}
