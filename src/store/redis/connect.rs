//! Opens one connection, and authenticates.

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

/// TCP keepalive. Calls without a reply notice a dead peer much earlier.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// How long sent bytes may stay unacknowledged before the system closes the connection.
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);
/// Calls that may wait to be written. Larger than the number of calls in flight.
const WRITE_QUEUE: usize = 1_024;

/// Kind of the error if a certificate is not trusted. No other error of connecting has it.
pub(super) const NOT_TRUSTED: ErrorKind = ErrorKind::Client;

/// Does the I/O of a connection. It ends when the connection does.
pub(super) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Opens a connection. The caller sets the deadline.
pub(super) async fn open(address: &Address) -> Result<(MultiplexedConnection, Driver), RedisError> {
    match &address.endpoint {
        Endpoint::Tcp { host, port } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            prepare(&stream)?;
            match &address.login.tls {
                Some(tls) => {
                    let stream = tls.secure(host, stream).await.map_err(not_trusted)?;
                    authenticate(address, stream).await
                }
                None => authenticate(address, stream).await,
            }
        }
        #[cfg(unix)]
        Endpoint::Unix(path) => authenticate(address, UnixStream::connect(path).await?).await,
        #[cfg(not(unix))]
        Endpoint::Unix(_) => Err(io::Error::from(io::ErrorKind::Unsupported).into()),
    }
}

/// Distinguishes an untrusted certificate from a network failure.
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
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_INTERVAL);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(any(target_os = "android", target_os = "linux"))]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    Ok(())
}

async fn authenticate<S>(
    address: &Address,
    stream: S,
) -> Result<(MultiplexedConnection, Driver), RedisError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut info = RedisConnectionInfo::default()
        .set_db(i64::from(address.login.database))
        .set_lib_name("tollgate", env!("CARGO_PKG_VERSION"));
    if let Some(user) = &address.login.user {
        info = info.set_username(user);
    }
    if let Some(password) = &address.login.password {
        info = info.set_password(password);
    }
    let settings = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(WRITE_QUEUE);
    let (connection, driver) =
        MultiplexedConnection::new_with_config(&info, stream, settings).await?;
    Ok((connection, Box::pin(driver)))
}
