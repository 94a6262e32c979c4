//! Sentinels: they say which server is the primary, and are asked again and again.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisError, Value};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::address::{Address, Endpoint, Login};
use super::connect::{self, Driver};
use super::error::RedisStoreError;
use super::source::connect_to;

/// How long one sentinel is asked. There are others.
const PATIENCE: Duration = Duration::from_millis(300);
/// How often it is asked whether the primary is still the same. A server that was cut off from the
/// sentinels does not know that it is none any more, and goes on as if nothing had happened.
const EVERY: Duration = Duration::from_secs(1);

/// Some sentinels, and whom they are asked for.
#[derive(Debug)]
pub(super) struct Sentinels {
    addresses: Vec<Address>,
    name: String,
    login: Arc<Login>,
    /// The one that has answered last.
    current: usize,
    line: Option<Connection>,
    primary: Option<Endpoint>,
}

/// A connection to a sentinel.
#[derive(Debug)]
struct Connection {
    connection: MultiplexedConnection,
    _driving: Driving,
}

/// Moves the bytes of a connection until it is dropped.
#[derive(Debug)]
struct Driving(JoinHandle<()>);

impl Drop for Driving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Sentinels {
    pub(super) fn new(addresses: Vec<Address>, name: String, login: Arc<Login>) -> Self {
        Self {
            addresses,
            name,
            login,
            current: 0,
            line: None,
            primary: None,
        }
    }

    pub(super) fn place(&self) -> Arc<str> {
        let sentinels: Vec<String> = self.addresses.iter().map(Address::to_string).collect();
        format!("{} (of sentinels {})", self.name, sentinels.join(",")).into()
    }

    /// Opens a connection to the primary. It has to say itself that it is one.
    pub(super) async fn open(
        &mut self,
    ) -> Result<(MultiplexedConnection, Driver), RedisStoreError> {
        let found = self.ask_around().await?;
        let primary = Address::new(found.clone(), Arc::clone(&self.login));
        let place: Arc<str> = format!("{primary} ({})", self.name).into();
        let (mut connection, driver) = connect_to(&primary, &place).await?;
        let mut driving = Driving(tokio::spawn(driver));
        let role = async {
            let role: Vec<Value> = redis::cmd("ROLE").query_async(&mut connection).await?;
            Ok(matches!(role.first(), Some(Value::BulkString(role)) if role == b"master"))
        };
        let role: Result<bool, RedisError> = match timeout(PATIENCE, role).await {
            Ok(role) => role,
            Err(_) => return Err(RedisStoreError::late(&place, PATIENCE)),
        };
        match role {
            Ok(true) => {
                self.primary = Some(found);
                let driver = async move {
                    let _ = (&mut driving.0).await;
                };
                Ok((connection, Box::pin(driver)))
            }
            Ok(false) => Err(RedisStoreError::demoted(&place)),
            Err(error) => Err(RedisStoreError::calling(&place, error)),
        }
    }

    /// Completes when the sentinels say that somebody else is the primary. That they cannot be
    /// asked means nothing.
    pub(super) async fn has_moved(&mut self) -> RedisStoreError {
        loop {
            sleep(EVERY).await;
            if let Ok(primary) = self.ask_around().await
                && self.primary.as_ref() != Some(&primary)
            {
                return RedisStoreError::demoted(&self.place());
            }
        }
    }

    /// Asks one after the other, the last that knew first.
    async fn ask_around(&mut self) -> Result<Endpoint, RedisStoreError> {
        let mut why = RedisStoreError::unknown_primary(&self.place(), &self.name);
        for _ in 0..self.addresses.len() {
            let address = self.addresses[self.current].clone();
            match timeout(PATIENCE, self.ask(&address)).await {
                Ok(Ok(Some(primary))) => return Ok(primary),
                Ok(Ok(None)) => {}
                Ok(Err(error)) => why = RedisStoreError::connecting(&address.place(), error),
                Err(_) => why = RedisStoreError::late(&address.place(), PATIENCE),
            }
            self.line = None;
            self.current = (self.current + 1) % self.addresses.len();
        }
        Err(why)
    }

    /// Asks one sentinel. Most need no password; those that do get ours.
    async fn ask(&mut self, address: &Address) -> Result<Option<Endpoint>, RedisError> {
        let anonymous = Address::new(
            address.endpoint.clone(),
            Arc::new(address.login.without_password()),
        );
        match self.ask_as(&anonymous).await {
            Err(error)
                if error.kind() == ErrorKind::AuthenticationFailed
                    || error.code() == Some("NOAUTH") =>
            {
                self.line = None;
                self.ask_as(address).await
            }
            other => other,
        }
    }

    async fn ask_as(&mut self, address: &Address) -> Result<Option<Endpoint>, RedisError> {
        let line = match &mut self.line {
            Some(line) => line,
            none => {
                let (connection, driver) = connect::open(address).await?;
                none.insert(Connection {
                    connection,
                    _driving: Driving(tokio::spawn(driver)),
                })
            }
        };
        let mut command = redis::cmd("SENTINEL");
        command.arg("get-master-addr-by-name").arg(&self.name);
        let found: Option<(String, u16)> = command.query_async(&mut line.connection).await?;
        Ok(found.map(|(host, port)| address.endpoint.resolve(&host, port)))
    }
}
