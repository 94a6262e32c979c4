//! Server that a connection is opened to.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use tokio::time::timeout;

use super::address::Address;
use super::connect::{self, Driver};
use super::error::{ErrorCause, RedisStoreError};
use super::sentinel::Sentinels;
use super::tls_probe::TlsProbe;

/// A fixed server, or the primary that sentinels name.
#[derive(Debug)]
pub(super) enum ConnectionSource {
    Server(Address, TlsProbe),
    Primary(Sentinels),
}

impl ConnectionSource {
    /// Time limit of one attempt.
    const ATTEMPT: Duration = Duration::from_secs(1);

    /// A fixed server.
    pub(super) fn server(address: Address) -> Self {
        Self::Server(address, TlsProbe::default())
    }

    /// Text for error messages.
    pub(super) fn place(&self) -> Arc<str> {
        match self {
            Self::Server(address, _) => address.place(),
            Self::Primary(sentinels) => sentinels.place(),
        }
    }

    /// Opens a connection.
    pub(super) async fn open(
        &mut self,
    ) -> Result<(MultiplexedConnection, Driver), RedisStoreError> {
        match self {
            Self::Server(address, probe) => connect_to(address, &address.place(), probe).await,
            Self::Primary(sentinels) => sentinels.open().await,
        }
    }

    /// Completes when another server has become the primary.
    pub(super) async fn has_moved(&mut self) -> RedisStoreError {
        match self {
            Self::Server(..) => pending().await,
            Self::Primary(sentinels) => sentinels.has_moved().await,
        }
    }
}

/// Opens a connection to this server within [`ConnectionSource::ATTEMPT`].
pub(super) async fn connect_to(
    address: &Address,
    place: &Arc<str>,
    probe: &mut TlsProbe,
) -> Result<(MultiplexedConnection, Driver), RedisStoreError> {
    match timeout(ConnectionSource::ATTEMPT, connect::open(address, probe)).await {
        Ok(opened) => opened.map_err(|error| RedisStoreError::connecting(place, error)),
        Err(_) => Err(RedisStoreError::new(
            place,
            ErrorCause::NotConnected(ConnectionSource::ATTEMPT),
        )),
    }
}
