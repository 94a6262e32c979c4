//! A cluster: a request queue per primary, and a map from slots to primaries.
//!
//! The map may be outdated. A server that receives a request for a slot of another server runs nothing, and
//! names the other one; following such a redirect charges nothing twice. When a server redirects or
//! fails, the map is reloaded in the background.

mod map;
mod route;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::address::{Address, Endpoint};
use super::error::{ErrorCause, RedisStoreError};
use super::queue::{
    PendingReply, QueueSettings, QueuedCommand, QueuedRequest, Reply, RequestQueue, SendMode,
};
use super::redirect::Redirect;
use super::refunds::PendingRefund;
use super::request::Request;
use super::slots::{SlotMap, slot_of};
use super::source::ConnectionSource;
use crate::clock::{Clock as _, Timestamp};
use crate::sync::locked;

pub(super) use self::route::NodeRoute;

/// Redirects that one request follows. Servers that disagree about a slot would pass it back and
/// forth.
const MAX_HOPS: u8 = 5;
/// Wait before a request is first repeated whose keys are partly on another server. Each further wait is
/// twice as long, up to [`MAX_TRY_AGAIN_AFTER`].
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(2);
const MAX_TRY_AGAIN_AFTER: Duration = Duration::from_millis(64);

/// A primary.
#[derive(Debug)]
struct ClusterNode {
    endpoint: Endpoint,
    queue: RequestQueue,
}

#[derive(Clone, Debug)]
enum MapState {
    /// The first load runs. Requests wait for it.
    Loading,
    Known(Arc<SlotMap<Arc<ClusterNode>>>),
    /// No load has succeeded since this time. Requests fail at once.
    Unknown(Timestamp, RedisStoreError),
}

/// A Redis cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    this: Weak<Self>,
    place: Arc<str>,
    seeds: Vec<Address>,
    settings: QueueSettings,
    map: watch::Sender<MapState>,
    nodes: Mutex<HashMap<Endpoint, Arc<ClusterNode>>>,
    /// Notified when the map may be outdated.
    reload: Arc<Notify>,
}

impl Cluster {
    /// Starts to load the map.
    pub(super) fn start(seeds: Vec<Address>, settings: QueueSettings) -> Arc<Self> {
        let places: Vec<String> = seeds.iter().map(Address::to_string).collect();
        let cluster = Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            place: places.join(",").into(),
            seeds,
            settings,
            map: watch::Sender::new(MapState::Loading),
            nodes: Mutex::default(),
            reload: Arc::default(),
        });
        let keep = Self::keep_map(Arc::downgrade(&cluster), Arc::clone(&cluster.reload));
        cluster.settings.runtime.spawn(keep);
        cluster
    }

    pub(super) fn now(&self) -> Timestamp {
        self.settings.clock.now()
    }

    /// Addresses of the seeds, for error messages.
    pub(super) fn place(&self) -> &Arc<str> {
        &self.place
    }

    /// Returns whether every known primary has a connection.
    pub(super) fn is_connected(&self) -> bool {
        match &*self.map.borrow() {
            MapState::Known(map) => map.nodes().iter().all(|node| node.queue.is_connected()),
            MapState::Loading | MapState::Unknown(..) => false,
        }
    }

    /// Returns the failures of all primaries that have slots.
    pub(super) fn failing(&self) -> Vec<(Timestamp, RedisStoreError)> {
        match &*self.map.borrow() {
            MapState::Known(map) => {
                let nodes = map.nodes().iter();
                nodes.filter_map(|node| node.queue.failing()).collect()
            }
            MapState::Loading => Vec::new(),
            MapState::Unknown(since, error) => vec![(*since, error.clone())],
        }
    }

    /// Returns the queues of all primaries.
    pub(super) async fn primaries(
        &self,
        within: Duration,
    ) -> Result<Vec<RequestQueue>, RedisStoreError> {
        let map = self.slot_map(within).await?;
        Ok(map.nodes().iter().map(|node| node.queue.clone()).collect())
    }

    /// Sends a decision about one key to the primary of its slot. It is sent even if the future is
    /// dropped.
    pub(super) fn decision(
        &self,
        request: Request,
        due: Timestamp,
    ) -> impl Future<Output = Reply> + Send + use<> {
        self.decide(request, None, due).decision()
    }

    pub(super) fn decide(
        &self,
        request: Request,
        refund: Option<PendingRefund>,
        due: Timestamp,
    ) -> PendingReply {
        let slot = request.keys.first().map_or(0, |key| slot_of(key));
        let due = (due, self.settings.deadline);
        self.send(QueuedCommand::Decide(request), slot, due, refund)
    }

    /// Queues a command at the primary of the slot of `key`.
    pub(super) fn enqueue(
        &self,
        key: &str,
        command: QueuedCommand,
        within: Duration,
    ) -> PendingReply {
        self.send(command, slot_of(key), (self.due(within), within), None)
    }

    pub(super) fn due(&self, within: Duration) -> Timestamp {
        self.now().saturating_add(within)
    }

    /// Returns the queue of the primary of the slot of `key`.
    pub(super) async fn queue(
        &self,
        key: &str,
        within: Duration,
    ) -> Result<RequestQueue, RedisStoreError> {
        Ok(self.owner(slot_of(key), within).await?.queue.clone())
    }

    /// Opens another connection to the primary of the slot of `key`. It follows no redirects.
    pub(super) async fn dedicated(
        &self,
        key: &str,
        within: Duration,
    ) -> Result<RequestQueue, RedisStoreError> {
        let node = self.owner(slot_of(key), within).await?;
        let address = self.seeds[0].with_endpoint(node.endpoint.clone());
        Ok(self.settings.start(ConnectionSource::server(address), None))
    }

    fn send(
        &self,
        command: QueuedCommand,
        slot: u16,
        due: (Timestamp, Duration),
        refund: Option<PendingRefund>,
    ) -> PendingReply {
        let (request, reply) = QueuedRequest::new(command, slot, due, &self.place);
        self.route(request.with_refund(refund));
        reply
    }

    /// Queues a request at the primary of its slot. Waits in a task if the map is being loaded.
    fn route(&self, mut request: QueuedRequest) {
        if let Some(node) = self.known_owner(request.slot) {
            return node.queue.push(request);
        }
        let Some(this) = self.this.upgrade() else {
            return request.complete(Err(RedisStoreError::new(
                &self.place,
                ErrorCause::NoRuntime,
            )));
        };
        self.settings.runtime.spawn(async move {
            let within = request.due.duration_since(this.now());
            match this.owner(request.slot, within).await {
                Ok(node) => node.queue.push(request),
                Err(error) => request.complete(Err(error)),
            }
        });
    }

    fn follow(&self, from: &Endpoint, mut request: QueuedRequest, redirect: &Redirect) {
        let (host, port, is_moved) = match redirect {
            Redirect::TryAgain => return self.try_again(from, request),
            Redirect::Moved { host, port } => (host, *port, true),
            Redirect::Ask { host, port } => (host, *port, false),
        };
        request.hops += 1;
        if request.hops > MAX_HOPS {
            let error = RedisStoreError::new(&self.place, ErrorCause::NoOwner(request.slot));
            return request.complete(Err(error));
        }
        let node = self.node(&from.resolve(host, port));
        if is_moved {
            self.map.send_modify(|state| {
                if let MapState::Known(map) = state {
                    let slot = request.slot;
                    *map = Arc::new(map.with(slot, Arc::clone(&node), Arc::ptr_eq));
                }
            });
            self.reload.notify_one();
            request.mode = request.command.mode();
        } else {
            // The key has moved, the slot has not.
            request.mode = SendMode::Asking;
        }
        node.queue.push(request);
    }

    /// Repeats a request after a wait, within its deadline. The server has run nothing, because a part
    /// of the keys is on another one: their slot is being moved.
    ///
    /// A new log has no key on either server. The importing one creates it when the move has ended.
    fn try_again(&self, from: &Endpoint, mut request: QueuedRequest) {
        let wait = TRY_AGAIN_AFTER * 2_u32.saturating_pow(request.retries);
        let wait = wait.min(MAX_TRY_AGAIN_AFTER);
        // Time for the call is left. A call that expires would count as a failure of the server.
        if self.now().saturating_add(wait * 2) > request.due {
            let error = RedisStoreError::new(&self.place, ErrorCause::NoOwner(request.slot));
            return request.complete(Err(error));
        }
        request.retries += 1;
        if request.mode == SendMode::Coalesced {
            request.mode = SendMode::Alone;
        }
        let node = self.node(from);
        self.settings.runtime.spawn(async move {
            sleep(wait).await;
            node.queue.push(request);
        });
    }

    /// Returns the primary of a slot if the map is known.
    fn known_owner(&self, slot: u16) -> Option<Arc<ClusterNode>> {
        match &*self.map.borrow() {
            MapState::Known(map) => map.owner(slot).map(Arc::clone),
            MapState::Loading | MapState::Unknown(..) => None,
        }
    }

    /// Returns the primary of a slot. Waits while the map is being loaded for the first time.
    async fn owner(
        &self,
        slot: u16,
        within: Duration,
    ) -> Result<Arc<ClusterNode>, RedisStoreError> {
        let map = self.slot_map(within).await?;
        map.owner(slot).map(Arc::clone).ok_or_else(|| {
            self.reload.notify_one();
            RedisStoreError::new(&self.place, ErrorCause::NoOwner(slot))
        })
    }

    async fn slot_map(
        &self,
        within: Duration,
    ) -> Result<Arc<SlotMap<Arc<ClusterNode>>>, RedisStoreError> {
        let mut map = self.map.subscribe();
        let loaded = map.wait_for(|map| !matches!(map, MapState::Loading));
        match timeout(within, loaded).await {
            Ok(Ok(map)) => match &*map {
                MapState::Known(map) => Ok(Arc::clone(map)),
                MapState::Unknown(_, error) => Err(error.clone()),
                MapState::Loading => Err(RedisStoreError::new(
                    &self.place,
                    ErrorCause::NotConnected(within),
                )),
            },
            _ => Err(RedisStoreError::new(
                &self.place,
                ErrorCause::NotConnected(within),
            )),
        }
    }

    /// Returns the primary at this address. Starts its queue if it has none.
    fn node(&self, endpoint: &Endpoint) -> Arc<ClusterNode> {
        let mut nodes = locked(&self.nodes);
        let new = || {
            let address = self.seeds[0].with_endpoint(endpoint.clone());
            let route = NodeRoute {
                cluster: Weak::clone(&self.this),
                endpoint: endpoint.clone(),
            };
            Arc::new(ClusterNode {
                endpoint: endpoint.clone(),
                queue: self
                    .settings
                    .start(ConnectionSource::server(address), Some(route)),
            })
        };
        Arc::clone(nodes.entry(endpoint.clone()).or_insert_with(new))
    }
}

/// Wakes the task that keeps the map, so that it ends.
impl Drop for Cluster {
    fn drop(&mut self) {
        self.reload.notify_one();
    }
}
