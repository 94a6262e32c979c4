//! Instants at which waiting requests will be sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::host::Host;
use crate::clock::Timestamp;

/// Instants that waiting requests have reserved, with the number of requests.
#[derive(Debug, Default)]
pub(super) struct ReservedInstants(BTreeMap<Timestamp, usize>);

impl ReservedInstants {
    pub(super) fn insert(&mut self, at: Timestamp) {
        *self.0.entry(at).or_default() += 1;
    }

    pub(super) fn remove(&mut self, at: Timestamp) {
        if let Some(requests) = self.0.get_mut(&at) {
            *requests -= 1;
            if *requests == 0 {
                self.0.remove(&at);
            }
        }
    }

    pub(super) fn last(&self) -> Option<Timestamp> {
        self.0.last_key_value().map(|(at, _)| *at)
    }
}

/// Instant that a waiting request has reserved. It is free again when this is dropped: when the request
/// is sent, or when its caller gives up.
#[derive(Debug)]
pub(super) struct SendReservation {
    pub(super) host: Arc<Host>,
    pub(super) at: Timestamp,
}

impl Drop for SendReservation {
    fn drop(&mut self) {
        self.host.release(self.at);
    }
}
