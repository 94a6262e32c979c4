//! Maps error replies of the server to causes. No other module reads the code of an error reply to
//! distinguish a wrong configuration from an outage.

use redis::{ErrorKind, RedisError};

use super::{ErrorCause, UnusableServer};
use crate::store::redis::redirect::Redirect;
use crate::store::redis::setup::ConnectCommand;

impl ErrorCause {
    /// Returns the cause of a failed call.
    pub(super) fn of_call(error: RedisError) -> Self {
        if is_authentication_error(&error) {
            Self::Refused(error)
        } else if is_missing_permission(&error) {
            Self::Forbidden(error)
        } else if is_code(&error, "READONLY") {
            Self::ReadOnly(error)
        } else if is_code(&error, "OOM") {
            Self::OutOfMemory(error)
        } else if is_code(&error, "MISCONF") {
            Self::NotPersisted(error)
        } else if let Some(redirect) = Redirect::from_error(&error) {
            Self::Redirected(redirect, error)
        } else if error.is_io_error() {
            Self::Lost(error)
        } else {
            Self::Failed(error)
        }
    }

    /// Returns the cause of a connection that was not opened because of this error reply.
    pub(super) fn of_connecting(command: ConnectCommand, error: RedisError) -> Self {
        if is_code(&error, "DENIED") {
            Self::Unusable(UnusableServer::ProtectedMode(error))
        } else if is_authentication_error(&error) {
            Self::Refused(error)
        } else if is_temporary(&error) {
            Self::Unreachable(error)
        } else {
            match command {
                ConnectCommand::Auth if is_about_credentials(&error) => Self::Refused(error),
                ConnectCommand::Select(database) => {
                    Self::Unusable(UnusableServer::RejectedDatabase(database, error))
                }
                ConnectCommand::Sentinel if is_unknown_command(&error) => {
                    Self::Unusable(UnusableServer::NotSentinel(error))
                }
                _ => Self::of_call(error),
            }
        }
    }
}

/// Returns whether the connection can be used although the server replied to the command with this
/// error.
///
/// `CLIENT SETINFO` has no effect on the store. `PING` may be forbidden, and the errors of a server that
/// is loading are those of the calls. Only a server that rejects every command rejects the connection.
pub(in crate::store::redis) fn is_ignored_while_connecting(
    command: ConnectCommand,
    error: &RedisError,
) -> bool {
    match command {
        ConnectCommand::ClientSetInfo => true,
        ConnectCommand::Ping => {
            let rejects_client = is_authentication_error(error)
                || is_code(error, "DENIED")
                || is_client_limit(error);
            !rejects_client
        }
        ConnectCommand::Auth | ConnectCommand::Select(_) | ConnectCommand::Sentinel => false,
    }
}

pub(in crate::store::redis) fn is_authentication_error(error: &RedisError) -> bool {
    matches!(error.code(), Some("NOAUTH" | "WRONGPASS"))
}

/// Redis 7.0 replies `ERR The user executing the script can't …` if a script lacks a permission.
fn is_missing_permission(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or_default();
    is_code(error, "NOPERM") || detail.starts_with("The user executing the script can't")
}

/// Returns whether an error reply to `AUTH` concerns user and password, for example `ERR AUTH
/// <password> called without any password configured for the default user`.
fn is_about_credentials(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or_default().to_ascii_lowercase();
    is_missing_permission(error) || detail.contains("auth") || detail.contains("password")
}

fn is_unknown_command(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or_default();
    detail.to_ascii_lowercase().contains("unknown command")
}

/// Returns whether the server has as many clients as its `maxclients` allows.
fn is_client_limit(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or_default();
    detail.starts_with("max number of clients")
}

/// Returns whether it is this error. The code is the first word of the reply, or a later one if a
/// script failed on a server before Redis 7, which wraps the error in `ERR`.
fn is_code(error: &RedisError, code: &str) -> bool {
    let is_reply = matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension);
    let detail = error.detail().unwrap_or_default();
    let words = detail.split(|c: char| !c.is_ascii_uppercase());
    is_reply
        && error
            .code()
            .into_iter()
            .chain(words)
            .any(|word| word == code)
}

/// Returns whether an error passes by itself.
pub(super) fn is_temporary(error: &RedisError) -> bool {
    const TEMPORARY: [&str; 9] = [
        "LOADING",
        "BUSY",
        "MOVED",
        "ASK",
        "TRYAGAIN",
        "CLUSTERDOWN",
        "MASTERDOWN",
        "NOREPLICAS",
        "NOSCRIPT",
    ];
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => {
            is_client_limit(error) || TEMPORARY.iter().any(|code| is_code(error, code))
        }
        ErrorKind::Parse
        | ErrorKind::UnexpectedReturnType
        | ErrorKind::InvalidClientConfig
        | ErrorKind::RESP3NotSupported => false,
        _ => true,
    }
}
