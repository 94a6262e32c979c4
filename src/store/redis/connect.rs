//! Opens one connection.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;

use futures_util::future::{Either, select};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisError};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::address::{Address, Endpoint, Login};
use super::setup::{ConnectCommand, set_up};
use super::tls::Tls;
use super::tls_probe::TlsProbe;

/// TCP keepalive. Calls without a reply notice a dead peer much earlier.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// How long sent bytes may stay unacknowledged before the system closes the connection.
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);
/// Calls that may wait to be written. Larger than the number of calls in flight.
const WRITE_QUEUE: usize = 1_024;

/// A TLS handshake without a reply for this long may be one with a server that does not use TLS.
const HANDSHAKE_SILENCE: Duration = Duration::from_millis(150);

/// Why a connection could not be opened.
#[derive(Clone, Debug)]
pub(super) enum ConnectError {
    /// The server uses TLS, the URL does not.
    TlsExpected,
    /// The URL uses TLS, the server does not.
    PlainExpected,
    /// The handshake failed, for example because the certificate is not trusted.
    Handshake(RedisError),
    /// The server replied to this command with an error.
    Rejected(ConnectCommand, RedisError),
    /// The reply is not in the protocol of Redis.
    NotRedis,
    /// The network failed.
    Failed(RedisError),
}

impl From<RedisError> for ConnectError {
    fn from(error: RedisError) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// Does the I/O of a connection. It ends when the connection does.
pub(super) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Opens a connection. The caller sets the deadline.
pub(super) async fn open(
    address: &Address,
    probe: &mut TlsProbe,
) -> Result<(MultiplexedConnection, Driver), ConnectError> {
    let opened = match &address.endpoint {
        Endpoint::Tcp { host, port } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            prepare(&stream)?;
            match &address.login.tls {
                Some(tls) => {
                    let stream = secure(tls, (host, *port), stream, probe).await?;
                    let started = start(&address.login, stream).await;
                    started.map_err(after_handshake)
                }
                None => match start(&address.login, stream).await {
                    Err(ConnectError::Failed(_)) if probe.expects_tls(host, *port).await => {
                        Err(ConnectError::TlsExpected)
                    }
                    started => started,
                },
            }
        }
        #[cfg(unix)]
        Endpoint::Unix(path) => {
            let stream = UnixStream::connect(path).await?;
            start(&address.login, stream).await
        }
        #[cfg(not(unix))]
        Endpoint::Unix(_) => Err(io::Error::from(io::ErrorKind::Unsupported).into()),
    }?;
    probe.reset();
    Ok(opened)
}

/// Does the TLS handshake. Distinguishes an untrusted certificate, and a server without TLS, from a
/// network failure.
async fn secure(
    tls: &Tls,
    (host, port): (&str, u16),
    stream: TcpStream,
    probe: &mut TlsProbe,
) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, ConnectError> {
    let mut handshake = pin!(tls.secure(host, stream));
    let done = if let Ok(done) = timeout(HANDSHAKE_SILENCE, &mut handshake).await {
        done
    } else {
        // The handshake goes on meanwhile: on a slow network, it takes longer.
        let expects_plain = pin!(probe.expects_plain(host, port));
        match select(&mut handshake, expects_plain).await {
            Either::Left((done, _)) => done,
            Either::Right((true, _)) => return Err(ConnectError::PlainExpected),
            Either::Right((false, _)) => handshake.await,
        }
    };
    let error = match done {
        Ok(stream) => return Ok(stream),
        Err(error) => error,
    };
    if probe.expects_plain(host, port).await {
        return Err(ConnectError::PlainExpected);
    }
    Err(match error.kind() {
        io::ErrorKind::InvalidData => ConnectError::Handshake(error.into()),
        _ => error.into(),
    })
}

/// With TLS 1.3 the server rejects a client without a certificate after the client's part of the
/// handshake.
fn after_handshake(error: ConnectError) -> ConnectError {
    match error {
        ConnectError::Failed(error) if error.to_string().contains("fatal alert") => {
            ConnectError::Handshake(error)
        }
        error => error,
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_INTERVAL);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(any(target_os = "android", target_os = "linux"))]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    Ok(())
}

/// Authenticates, and returns the connection with the future that does its I/O.
async fn start<S>(login: &Login, stream: S) -> Result<(MultiplexedConnection, Driver), ConnectError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = set_up(login, stream).await?;
    // Sends nothing: the connection is set up.
    let info = RedisConnectionInfo::default().set_skip_set_lib_name();
    let settings = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(WRITE_QUEUE);
    let (connection, driver) =
        MultiplexedConnection::new_with_config(&info, stream, settings).await?;
    Ok((connection, Box::pin(driver)))
}
