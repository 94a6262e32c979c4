//! Commands on the wire: sent once, never repeated.

use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};

use super::connection::Connection;
use super::queue::SendMode;
use super::script::Script;

/// Turns an `EVALSHA` command into `EVAL` with the text of the script.
pub(super) fn with_text(command: &Cmd, script: &Script) -> Cmd {
    let mut whole = redis::cmd("EVAL");
    whole.arg(&script.text);
    for argument in command.args_iter().skip(2) {
        if let redis::Arg::Simple(argument) = argument {
            whole.arg(argument);
        }
    }
    whole
}

/// Sends a command, and waits for its reply.
pub(super) async fn send(
    connection: &mut Connection,
    command: &Cmd,
    mode: SendMode,
) -> Result<Value, RedisError> {
    let connection = &mut connection.multiplexed;
    if mode != SendMode::Asking {
        let reply = connection.send_packed_command(command).await?;
        return reply.extract_error();
    }
    // One pipeline: ASKING applies to the next command on the connection.
    let mut both = redis::pipe();
    both.cmd("ASKING").ignore().add_command(command.clone());
    let replies: Result<Vec<Value>, _> = both.query_async(connection).await;
    match replies {
        Ok(replies) => Ok(replies.into_iter().next().unwrap_or(Value::Nil)),
        // The error that the command alone would have returned.
        Err(error) => match error.clone().into_server_errors().as_deref() {
            Some([.., (_, last)]) => Err(last.clone().into()),
            _ => Err(error),
        },
    }
}

/// Returns whether nothing has run, because the server does not have the script.
pub(super) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}
