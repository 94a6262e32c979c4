//! Finds the primary with the help of sentinels, and notices a failover.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisError, Value};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::address::{Address, Endpoint, Login};
use super::connect::{self, ConnectError, Driver};
use super::error::{ErrorCause, RedisStoreError, is_authentication_error};
use super::setup::ConnectCommand;
use super::source::connect_to;
use super::tls_probe::TlsProbe;

/// Time that one sentinel has to reply. Short, because the next one is tried then.
const WITHIN: Duration = Duration::from_millis(300);
/// Interval of checks whether the primary has changed. An old primary that lost contact with the
/// sentinels may not have learned that it was replaced, and then still accepts writes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Sentinels, and the name of the primary.
#[derive(Debug)]
pub(super) struct Sentinels {
    addresses: Vec<Address>,
    name: String,
    login: Arc<Login>,
    /// Index of the sentinel that replied last.
    current: usize,
    connection: Option<SentinelConnection>,
    primary: Option<Endpoint>,
    /// One per sentinel.
    sentinel_probes: Vec<TlsProbe>,
    primary_probe: TlsProbe,
}

/// A connection to a sentinel.
#[derive(Debug)]
struct SentinelConnection {
    connection: MultiplexedConnection,
    _driving: Driving,
}

/// Task that does the I/O of a connection. Dropping it ends the task.
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
            sentinel_probes: addresses.iter().map(|_| TlsProbe::default()).collect(),
            addresses,
            name,
            login,
            current: 0,
            connection: None,
            primary: None,
            primary_probe: TlsProbe::default(),
        }
    }

    pub(super) fn place(&self) -> Arc<str> {
        let sentinels: Vec<String> = self.addresses.iter().map(Address::to_string).collect();
        format!("{} (of sentinels {})", self.name, sentinels.join(",")).into()
    }

    /// Opens a connection to the primary, which must report that role itself.
    pub(super) async fn open(
        &mut self,
    ) -> Result<(MultiplexedConnection, Driver), RedisStoreError> {
        let found = self.find_primary().await?;
        let primary = Address::new(found.clone(), Arc::clone(&self.login));
        let place: Arc<str> = format!("{primary} ({})", self.name).into();
        let (mut connection, driver) =
            connect_to(&primary, &place, &mut self.primary_probe).await?;
        let mut driving = Driving(tokio::spawn(driver));
        let role = async {
            let role: Vec<Value> = redis::cmd("ROLE").query_async(&mut connection).await?;
            Ok(matches!(role.first(), Some(Value::BulkString(role)) if role == b"master"))
        };
        let role: Result<bool, RedisError> = match timeout(WITHIN, role).await {
            Ok(role) => role,
            Err(_) => return Err(RedisStoreError::new(&place, ErrorCause::Late(WITHIN))),
        };
        match role {
            Ok(true) => {
                self.primary = Some(found);
                let driver = async move {
                    let _ = (&mut driving.0).await;
                };
                Ok((connection, Box::pin(driver)))
            }
            Ok(false) => Err(RedisStoreError::new(&place, ErrorCause::Demoted)),
            Err(error) => Err(RedisStoreError::calling(&place, error)),
        }
    }

    /// Completes when the sentinels name another primary. Sentinels that do not reply are ignored.
    pub(super) async fn has_moved(&mut self) -> RedisStoreError {
        loop {
            sleep(CHECK_INTERVAL).await;
            if let Ok(primary) = self.find_primary().await
                && self.primary.as_ref() != Some(&primary)
            {
                return RedisStoreError::new(&self.place(), ErrorCause::Demoted);
            }
        }
    }

    /// Queries one sentinel after the other, beginning with the one that replied last.
    async fn find_primary(&mut self) -> Result<Endpoint, RedisStoreError> {
        let mut error: Option<RedisStoreError> = None;
        for _ in 0..self.addresses.len() {
            let address = self.addresses[self.current].clone();
            let failed = match timeout(WITHIN, self.query(&address)).await {
                Ok(Ok(Some(primary))) => return Ok(primary),
                Ok(Ok(None)) => None,
                Ok(Err(cause)) => Some(RedisStoreError::connecting(&address.place(), cause)),
                Err(_) => Some(RedisStoreError::new(
                    &address.place(),
                    ErrorCause::Late(WITHIN),
                )),
            };
            error = RedisStoreError::worse_of(error, failed);
            self.connection = None;
            self.current = (self.current + 1) % self.addresses.len();
        }
        Err(error.unwrap_or_else(|| RedisStoreError::unknown_primary(&self.place(), &self.name)))
    }

    /// Queries one sentinel, first without credentials: most sentinels have none.
    async fn query(&mut self, address: &Address) -> Result<Option<Endpoint>, ConnectError> {
        let anonymous = Address::new(
            address.endpoint.clone(),
            Arc::new(address.login.without_password()),
        );
        match self.query_as(&anonymous).await {
            Err(ConnectError::Rejected(_, error)) if is_authentication_error(&error) => {
                self.connection = None;
                self.query_as(address).await
            }
            other => other,
        }
    }

    async fn query_as(&mut self, address: &Address) -> Result<Option<Endpoint>, ConnectError> {
        let line = match &mut self.connection {
            Some(line) => line,
            none => {
                let probe = &mut self.sentinel_probes[self.current];
                let (connection, driver) = connect::open(address, probe).await?;
                none.insert(SentinelConnection {
                    connection,
                    _driving: Driving(tokio::spawn(driver)),
                })
            }
        };
        let mut command = redis::cmd("SENTINEL");
        command.arg("get-master-addr-by-name").arg(&self.name);
        let found: Result<Option<(String, u16)>, _> =
            command.query_async(&mut line.connection).await;
        let found = found.map_err(|error| match error.code() {
            Some(_) => ConnectError::Rejected(ConnectCommand::Sentinel, error),
            None => ConnectError::Failed(error),
        })?;
        Ok(found.map(|(host, port)| address.endpoint.resolve(&host, port)))
    }
}
