//! Loads the slot map, and keeps it up to date.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::{Cluster, MapState};
use crate::store::redis::address::Endpoint;
use crate::store::redis::backoff::Backoff;
use crate::store::redis::error::{ErrorCause, RedisStoreError};
use crate::store::redis::slots::SlotMap;
use crate::store::redis::source::ConnectionSource;
use crate::store::redis::topology::{self, SlotRange};
use crate::sync::locked;

/// A map that was valid for this long is reloaded without back-off.
const STABLE_AFTER: Duration = Duration::from_secs(2);

impl Cluster {
    /// Loads the map, and reloads it when it may be outdated, until the cluster is dropped.
    pub(super) async fn keep_map(cluster: Weak<Self>, reload: Arc<Notify>) {
        let (mut backoff, mut turn) = (Backoff::default(), 0);
        loop {
            let Some(random) = cluster.upgrade().map(|this| this.settings.random) else {
                return;
            };
            sleep(backoff.next(random())).await;
            let Some(this) = cluster.upgrade() else {
                return;
            };
            let loaded = this.load(turn).await;
            turn += 1;
            match loaded {
                Ok(ranges) => this.install(ranges),
                Err(error) => {
                    let now = this.now();
                    this.map.send_if_modified(|map| match map {
                        MapState::Known(_) => false,
                        MapState::Unknown(_, why) => {
                            *why = error;
                            true
                        }
                        MapState::Loading => {
                            *map = MapState::Unknown(now, error);
                            true
                        }
                    });
                    continue;
                }
            }
            drop(this);
            if timeout(STABLE_AFTER, reload.notified()).await.is_err() {
                backoff.reset();
                reload.notified().await;
            }
        }
    }

    /// Queries one server after the other. Each time another one is first, because one of them may have
    /// lost contact with the others.
    async fn load(&self, turn: usize) -> Result<Vec<SlotRange>, RedisStoreError> {
        let mut endpoints: Vec<Endpoint> = match &*self.map.borrow() {
            MapState::Known(map) => {
                let nodes = map.nodes().iter();
                nodes.map(|node| node.endpoint.clone()).collect()
            }
            MapState::Loading | MapState::Unknown(..) => Vec::new(),
        };
        if !endpoints.is_empty() {
            let first = turn % endpoints.len();
            endpoints.rotate_left(first);
        }
        endpoints.extend(self.seeds.iter().map(|seed| seed.endpoint.clone()));
        let mut failure = None;
        for endpoint in endpoints {
            let known = locked(&self.nodes).get(&endpoint).map(Arc::clone);
            // A seed is not necessarily a primary. Its connection closes after the call.
            let queue = known.map_or_else(
                || {
                    let address = self.seeds[0].with_endpoint(endpoint.clone());
                    self.settings.start(ConnectionSource::server(address), None)
                },
                |node| node.queue.clone(),
            );
            match topology::load(&queue, &endpoint).await {
                Ok(ranges) if !ranges.is_empty() => return Ok(ranges),
                Ok(_) => {}
                Err(error) => failure = RedisStoreError::worse_of(failure, Some(error)),
            }
        }
        Err(failure.unwrap_or_else(|| RedisStoreError::new(&self.place, ErrorCause::NoOwner(0))))
    }

    fn install(&self, ranges: Vec<SlotRange>) {
        let ranges = ranges
            .into_iter()
            .map(|(first, last, endpoint)| (first, last, self.node(&endpoint)));
        let map = SlotMap::new(ranges, Arc::ptr_eq);
        let mut nodes = locked(&self.nodes);
        // A node that imports its first slot is not in the map yet, and is in use.
        nodes.retain(|_, node| {
            let has_slots = map.nodes().iter().any(|owner| Arc::ptr_eq(owner, node));
            has_slots || node.queue.is_connected()
        });
        drop(nodes);
        self.map.send_replace(MapState::Known(Arc::new(map)));
    }
}
