//! Detects that the URL and the server disagree about TLS.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Detects a server that uses TLS although the URL does not, or the other way round.
///
/// Neither can be seen on the connection itself. A server with TLS resets a connection without it,
/// as a load balancer without servers does. A server without TLS waits for the end of the client's
/// first message, as a frozen server does. Therefore a second connection sends the first message of
/// the other protocol. It contains no credentials.
#[derive(Debug, Default)]
pub(super) struct TlsProbe {
    failures: u32,
    is_mismatch: bool,
}

impl TlsProbe {
    /// Attempts to connect that fail between two probes. The last result applies meanwhile.
    const INTERVAL: u32 = 8;
    const WITHIN: Duration = Duration::from_millis(200);
    /// A `ClientHello` without content. A server with TLS replies with an alert.
    const CLIENT_HELLO: &[u8] = &[0x16, 3, 1, 0, 4, 1, 0, 0, 0];
    const TLS_ALERT: u8 = 0x15;

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

    async fn check(
        &mut self,
        host: &str,
        port: u16,
        message: &[u8],
        is_expected: fn(u8) -> bool,
    ) -> bool {
        if self.failures.is_multiple_of(Self::INTERVAL) {
            let reply = async {
                let mut stream = TcpStream::connect((host, port)).await?;
                stream.write_all(message).await?;
                stream.read_u8().await
            };
            let reply = timeout(Self::WITHIN, reply).await;
            self.is_mismatch = matches!(reply, Ok(Ok(byte)) if is_expected(byte));
        }
        self.failures = self.failures.wrapping_add(1);
        self.is_mismatch
    }

    /// A connection was opened: client and server agree.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}
