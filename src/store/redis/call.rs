//! Calls: each with a deadline, none made twice.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, ServerErrorKind};
use tokio::time::sleep;

use super::link::{Line, Link};
use super::script::Script;
use super::trouble::Trouble;

/// What a script is called with.
#[derive(Debug)]
pub(super) struct ScriptCall<'a> {
    pub(super) script: &'static Script,
    pub(super) keys: &'a [String],
    pub(super) arguments: &'a [&'a [u8]],
}

impl Link {
    /// Runs a script. Whether it has run is not known if no answer comes, so there is no second
    /// attempt.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        call: ScriptCall<'_>,
        deadline: Duration,
    ) -> Result<T, Trouble> {
        self.within(deadline, async |line| {
            let known = call.command("EVALSHA", &call.script.hash);
            match known.query_async(&mut line.connection).await {
                // Nothing has run: a server that has restarted, or whose scripts were flushed.
                // Whoever sends the text makes it known again.
                Err(error) if is_unknown_script(&error) => {
                    let whole = call.command("EVAL", &call.script.text);
                    whole.query_async(&mut line.connection).await
                }
                other => other,
            }
        })
        .await
    }

    /// Runs a command.
    pub(super) async fn command<T: FromRedisValue>(
        &self,
        command: &Cmd,
        deadline: Duration,
    ) -> Result<T, Trouble> {
        let ask = async |line: &mut Line| command.query_async(&mut line.connection).await;
        self.within(deadline, ask).await
    }

    /// Asks something on the connection, and notes what that says about it. The time that it takes
    /// to get a connection counts.
    async fn within<T>(
        &self,
        deadline: Duration,
        ask: impl AsyncFnOnce(&mut Line) -> Result<T, RedisError>,
    ) -> Result<T, Trouble> {
        let mut too_late = pin!(sleep(deadline));
        let mut line = match select(pin!(self.line()), too_late.as_mut()).await {
            Either::Left((line, _)) => line?,
            Either::Right(_) => return Err(Trouble::not_yet(self.address(), deadline)),
        };
        let health = line.health.clone();
        health.asked();
        match select(pin!(ask(&mut line)), too_late).await {
            Either::Left((Ok(answer), _)) => {
                health.answered();
                Ok(answer)
            }
            Either::Left((Err(error), _)) => {
                let trouble = Trouble::calling(self.address(), error);
                if trouble.is_answer() {
                    health.answered();
                }
                if trouble.calls_for_another_connection() {
                    health.condemn(&trouble);
                }
                Err(trouble)
            }
            Either::Right(_) => {
                let trouble = Trouble::late(self.address(), deadline);
                health.missed(&trouble);
                Err(trouble)
            }
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

/// Whether nothing has run, because the server does not know the script.
pub(super) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}
