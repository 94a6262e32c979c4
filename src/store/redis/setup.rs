//! First commands on a connection: authenticate, select the database, name the client.

use std::io;

use redis::{RedisError, Value};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite,
    AsyncWriteExt as _, BufReader,
};

use super::address::Login;
use super::connect::ConnectError;
use super::error::is_ignored_while_connecting;
use super::tls_probe::TlsProbe;

/// Longest reply that is read. That of a server in protected mode has about 1,000 bytes.
const LONGEST_REPLY: u64 = 16 * 1024;

/// Command that is sent while a connection is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectCommand {
    Auth,
    /// `SELECT` of this database.
    Select(u16),
    Ping,
    ClientSetInfo,
    /// `SENTINEL get-master-addr-by-name`.
    Sentinel,
}

/// Sends the first commands in one write, and evaluates their replies.
///
/// The replies are read here and not by the `redis` crate, which drops the code of an error reply to
/// `AUTH` and `SELECT`. The code distinguishes a wrong configuration from an outage.
pub(super) async fn set_up<S>(login: &Login, stream: S) -> Result<S, ConnectError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (sent, packed) = commands(login);
    let mut stream = BufReader::new(stream);
    // A server that rejects a client may reply and close the connection before it reads. The write
    // can fail then although there is a reply. Without a reply, the read fails as well.
    if stream.write_all(&packed).await.is_ok() {
        let _ = stream.flush().await;
    }
    for command in sent {
        if let Err(error) = read_reply(&mut stream).await?
            && !is_ignored_while_connecting(command, &error)
        {
            return Err(ConnectError::Rejected(command, error));
        }
    }
    if !stream.buffer().is_empty() {
        return Err(ConnectError::NotRedis);
    }
    Ok(stream.into_inner())
}

/// Returns the commands, and their bytes on the wire.
fn commands(login: &Login) -> (Vec<ConnectCommand>, Vec<u8>) {
    let (mut sent, mut pipeline) = (Vec::new(), redis::pipe());
    if let Some(password) = &login.password {
        sent.push(ConnectCommand::Auth);
        pipeline.cmd("AUTH").arg(login.user.as_ref()).arg(password);
    }
    if login.database != 0 {
        sent.push(ConnectCommand::Select(login.database));
        pipeline.cmd("SELECT").arg(login.database);
    }
    // The reply shows whether the server requires a password.
    sent.push(ConnectCommand::Ping);
    pipeline.cmd("PING");
    for (name, value) in [
        ("LIB-NAME", "tollgate"),
        ("LIB-VER", env!("CARGO_PKG_VERSION")),
    ] {
        sent.push(ConnectCommand::ClientSetInfo);
        let command = pipeline.cmd("CLIENT").arg("SETINFO");
        command.arg(name).arg(value);
    }
    (sent, pipeline.get_packed_pipeline())
}

/// Reads a reply of one line: a status, or an error. No other reply is expected.
async fn read_reply(
    stream: &mut (impl AsyncBufRead + Unpin),
) -> Result<Result<(), RedisError>, ConnectError> {
    let mut line = Vec::new();
    let mut limited = stream.take(LONGEST_REPLY);
    let read = limited.read_until(b'\n', &mut line).await;
    match line.first() {
        Some(b'+' | b'-') if line.ends_with(b"\r\n") => {}
        Some(b'+' | b'-') | None => {
            read?;
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Some(&TlsProbe::TLS_ALERT) => return Err(ConnectError::TlsExpected),
        Some(_) => return Err(ConnectError::NotRedis),
    }
    match redis::parse_redis_value(&line) {
        Ok(Value::ServerError(error)) => Ok(Err(error.into())),
        Ok(_) => Ok(Ok(())),
        Err(_) => Err(ConnectError::NotRedis),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of a connection to a server that sends these bytes and closes.
    async fn set_up_with(login: &Login, replies: &[u8]) -> Result<(), ConnectError> {
        let (client, mut server) = tokio::io::duplex(65_536);
        server.write_all(replies).await.expect("room for replies");
        server.shutdown().await.expect("a duplex can be closed");
        set_up(login, client).await.map(drop)
    }

    #[tokio::test]
    async fn missing_permissions_for_ping_and_setinfo_are_ignored() {
        let login = Login::default();
        let replies = b"-NOPERM no ping\r\n-ERR unknown subcommand\r\n-NOPERM no client\r\n";
        assert!(set_up_with(&login, replies).await.is_ok());
        let loading = b"-LOADING dataset\r\n+OK\r\n+OK\r\n";
        assert!(set_up_with(&login, loading).await.is_ok());
    }

    #[tokio::test]
    async fn rejected_command_is_returned_with_the_code_of_the_reply() {
        let login = Login {
            password: Some("word".to_owned()),
            database: 7,
            ..Login::default()
        };
        let replies = b"+OK\r\n-NOPERM no select\r\n+PONG\r\n+OK\r\n+OK\r\n";
        let error = set_up_with(&login, replies).await;
        let Err(ConnectError::Rejected(ConnectCommand::Select(7), error)) = error else {
            panic!("{error:?}");
        };
        assert_eq!(error.code(), Some("NOPERM"));
    }

    #[tokio::test]
    async fn reply_in_another_protocol_is_no_network_failure() {
        let login = Login::default();
        for reply in ["HTTP/1.1 400 Bad Request\r\n\r\n", "ERROR\r\n", "220 mail"] {
            let error = set_up_with(&login, reply.as_bytes()).await;
            assert!(matches!(error, Err(ConnectError::NotRedis)), "{error:?}");
        }
        let error = set_up_with(&login, &[TlsProbe::TLS_ALERT, 3, 1, 0, 2, 2, 70]).await;
        assert!(matches!(error, Err(ConnectError::TlsExpected)), "{error:?}");
        for reply in ["", "-ERR cut o"] {
            let error = set_up_with(&login, reply.as_bytes()).await;
            assert!(matches!(error, Err(ConnectError::Failed(_))), "{error:?}");
        }
    }
}
