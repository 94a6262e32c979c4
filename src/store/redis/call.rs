//! Calls: each with a deadline, none made twice.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, ServerErrorKind, Value};
use tokio::time::sleep;

use super::connection::{Connection, ConnectionHandle};
use super::error::RedisStoreError;
use super::script::Script;
use super::slot_queues::SendMode;

/// What a server is asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Question<'a> {
    Script(ScriptCall<'a>),
    Command(&'a Cmd),
}

/// What a script is called with.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScriptCall<'a> {
    pub(super) script: &'static Script,
    pub(super) keys: &'a [String],
    pub(super) arguments: &'a [&'a [u8]],
}

impl ConnectionHandle {
    /// Asks something, and notes what that says about the connection. The time that it takes to get
    /// one counts. Whether it was done is not known if no answer comes, so there is no second
    /// attempt.
    pub(super) async fn ask(
        &self,
        question: Question<'_>,
        deadline: Duration,
        mode: SendMode,
    ) -> Result<Value, RedisStoreError> {
        let mut too_late = pin!(sleep(deadline));
        let mut line = match select(pin!(self.line()), too_late.as_mut()).await {
            Either::Left((line, _)) => line?,
            Either::Right(_) => return Err(RedisStoreError::not_yet(self.place(), deadline)),
        };
        let health = line.health.clone();
        health.asked();
        match select(pin!(question.put(&mut line, mode)), too_late).await {
            Either::Left((Ok(answer), _)) => {
                health.answered();
                Ok(answer)
            }
            Either::Left((Err(error), _)) => {
                let trouble = RedisStoreError::calling(self.place(), error);
                if trouble.is_answer() {
                    health.answered();
                }
                if trouble.calls_for_another_connection() {
                    health.condemn(&trouble);
                }
                Err(trouble)
            }
            Either::Right(_) => {
                let trouble = RedisStoreError::late(self.place(), deadline);
                health.missed(&trouble);
                Err(trouble)
            }
        }
    }
}

impl Question<'_> {
    async fn put(self, line: &mut Connection, mode: SendMode) -> Result<Value, RedisError> {
        let call = match self {
            Self::Command(command) => return ask(line, command, mode).await,
            Self::Script(call) => call,
        };
        let known = call.command("EVALSHA", &call.script.hash);
        match ask(line, &known, mode).await {
            // Nothing has run: a server that has restarted, or whose scripts were flushed. Whoever
            // sends the text makes it known again.
            Err(error) if is_unknown_script(&error) => {
                let whole = call.command("EVAL", &call.script.text);
                ask(line, &whole, mode).await
            }
            other => other,
        }
    }
}

impl ScriptCall<'_> {
    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len()).arg(self.keys);
        for argument in self.arguments {
            command.arg(*argument);
        }
        command
    }
}

/// Asks something on a line.
pub(super) async fn ask(
    line: &mut Connection,
    command: &Cmd,
    mode: SendMode,
) -> Result<Value, RedisError> {
    if mode != SendMode::Asking {
        return command.query_async(&mut line.connection).await;
    }
    // Next to each other on the line, or it would be somebody else who is let in.
    let mut both = redis::pipe();
    both.cmd("ASKING").ignore().add_command(command.clone());
    let answers: Result<Vec<Value>, _> = both.query_async(&mut line.connection).await;
    match answers {
        Ok(answers) => Ok(answers.into_iter().next().unwrap_or(Value::Nil)),
        // As the command alone would have said it.
        Err(error) => match error.clone().into_server_errors().as_deref() {
            Some([.., (_, last)]) => Err(last.clone().into()),
            _ => Err(error),
        },
    }
}

/// An answer as what it should be.
pub(super) fn read<T: FromRedisValue>(
    answer: Value,
    place: &Arc<str>,
) -> Result<T, RedisStoreError> {
    T::from_redis_value(answer).map_err(|error| RedisStoreError::calling(place, error.into()))
}

/// Whether nothing has run, because the server does not know the script.
pub(super) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}
