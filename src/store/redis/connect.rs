//! One connection: opened, introduced, and known to answer.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, RedisConnectionInfo, RedisError};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

use super::address::{Address, Endpoint};

/// After so long without a word, the system asks whether the other side is still there, and gives
/// up soon after. Calls that get no answer notice it much earlier.
const QUIET: Duration = Duration::from_secs(15);
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// How long sent bytes may go without being acknowledged before the system gives up.
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);
/// How many calls may wait to be written; more wait for a place.
const QUEUE: usize = 1_024;

/// The kind of error if a server could not prove who it is. Nothing else that comes of connecting
/// is of this kind.
pub(super) const NOT_TRUSTED: ErrorKind = ErrorKind::Client;

/// Moves the bytes of a connection. It ends when the connection does.
pub(super) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Opens a connection. There is no deadline in here: whoever calls has one.
pub(super) async fn open(address: &Address) -> Result<(MultiplexedConnection, Driver), RedisError> {
    match &address.endpoint {
        Endpoint::Tcp { host, port } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            prepare(&stream)?;
            match &address.login.tls {
                Some(tls) => {
                    let stream = tls.secure(host, stream).await.map_err(not_trusted)?;
                    introduce(address, stream).await
                }
                None => introduce(address, stream).await,
            }
        }
        #[cfg(unix)]
        Endpoint::Unix(path) => introduce(address, UnixStream::connect(path).await?).await,
        #[cfg(not(unix))]
        Endpoint::Unix(_) => Err(io::Error::from(io::ErrorKind::Unsupported).into()),
    }
}

/// That the server could not prove who it is, as an error that can be told from a cut cable.
fn not_trusted(error: io::Error) -> RedisError {
    if error.kind() == io::ErrorKind::InvalidData {
        return RedisError::from((NOT_TRUSTED, "no secure connection", error.to_string()));
    }
    error.into()
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(QUIET)
        .with_interval(PROBE_EVERY);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(any(target_os = "android", target_os = "linux"))]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    Ok(())
}

async fn introduce<S>(
    address: &Address,
    stream: S,
) -> Result<(MultiplexedConnection, Driver), RedisError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut us = RedisConnectionInfo::default()
        .set_db(i64::from(address.login.database))
        .set_lib_name("tollgate", env!("CARGO_PKG_VERSION"));
    if let Some(user) = &address.login.user {
        us = us.set_username(user);
    }
    if let Some(password) = &address.login.password {
        us = us.set_password(password);
    }
    let settings = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(QUEUE);
    let (connection, driver) =
        MultiplexedConnection::new_with_config(&us, stream, settings).await?;
    Ok((connection, Box::pin(driver)))
}
