//! A cluster: a desk for every primary, and a map of who has which slot.
//!
//! The map is a guess. Whoever is asked for a slot that he has not says who has it, and has done
//! nothing; so that can be followed without a risk. Where the map may be wrong, because a server
//! said so or says nothing any more, it is made anew in the background.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use redis::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::address::{Address, Endpoint};
use super::backoff::Backoff;
use super::call::Question;
use super::connection::ConnectionHandle;
use super::dispatcher::{RequestQueue, Setup};
use super::error::{Redirect, RedisStoreError};
use super::request::Request;
use super::slot_queues::{Reply, SendMode};
use super::slots::{SlotMap, slot_of};
use super::source::Source;
use super::topology::{self, Range};
use crate::clock::Timestamp;
use crate::sync::locked;

/// How often a request is sent on. Servers that disagree about who has a slot would play ball with
/// it.
const MOST_HOPS: usize = 5;
/// How long to wait where keys of one slot are in two places.
const MOMENT: Duration = Duration::from_millis(2);
/// When nobody has doubted the map for so long, it is looked at again at once.
const CALM: Duration = Duration::from_secs(2);

/// A primary.
#[derive(Debug)]
struct Node {
    address: Address,
    desk: RequestQueue,
}

#[derive(Clone, Debug)]
enum Map {
    /// It is on its way, and worth waiting for.
    Looking,
    Known(Arc<SlotMap<Arc<Node>>>),
    /// There is none yet. Nobody has to wait for it.
    Unknown(RedisStoreError),
}

/// A cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    place: Arc<str>,
    seeds: Vec<Address>,
    setup: Setup,
    map: watch::Sender<Map>,
    nodes: Mutex<HashMap<Endpoint, Arc<Node>>>,
    /// Somebody doubts the map.
    doubt: Arc<Notify>,
}

impl Cluster {
    /// Starts to look for it.
    pub(super) fn start(seeds: Vec<Address>, setup: Setup) -> Arc<Self> {
        let places: Vec<String> = seeds.iter().map(Address::to_string).collect();
        let cluster = Arc::new(Self {
            place: places.join(",").into(),
            seeds,
            setup,
            map: watch::Sender::new(Map::Looking),
            nodes: Mutex::default(),
            doubt: Arc::default(),
        });
        let keep = Self::keep_map(Arc::downgrade(&cluster), Arc::clone(&cluster.doubt));
        cluster.setup.runtime.spawn(keep);
        cluster
    }

    pub(super) fn now(&self) -> Timestamp {
        self.setup.now()
    }

    pub(super) fn place(&self) -> &Arc<str> {
        &self.place
    }

    /// Whether every primary that is known has a connection.
    pub(super) fn is_connected(&self) -> bool {
        match &*self.map.borrow() {
            Map::Known(owners) => owners.nodes().iter().all(|node| node.desk.link().is_open()),
            Map::Looking | Map::Unknown(_) => false,
        }
    }

    /// The connections to all primaries.
    pub(super) async fn primaries(
        &self,
        within: Duration,
    ) -> Result<Vec<ConnectionHandle>, RedisStoreError> {
        let owners = self.owners(within).await?;
        Ok(owners
            .nodes()
            .iter()
            .map(|node| node.desk.link().clone())
            .collect())
    }

    /// Hands a request of one key in, where that key is. If the map is known, it is on its way when
    /// this returns; the future brings the answer, from wherever it has to be fetched.
    pub(super) fn ask(
        self: &Arc<Self>,
        request: Request,
        due: Timestamp,
    ) -> impl Future<Output = Reply> + Send + use<> {
        let slot = request.keys.first().map_or(0, |key| slot_of(key));
        let enqueue = move |node: &Node, request: &Request, mode| {
            let request = request.clone();
            node.desk.enqueue(request, (slot, mode), due)
        };
        let known = self.known_owner(slot);
        let sent = known.map(|node| (enqueue(&node, &request, SendMode::Together), node));
        let cluster = Arc::clone(self);
        async move {
            let (mut answer, mut node) = if let Some(sent) = sent {
                sent
            } else {
                let left = due.duration_since(cluster.setup.now());
                let node = cluster.owner(slot, left).await?;
                (enqueue(&node, &request, SendMode::Together), node)
            };
            for _ in 0..MOST_HOPS {
                let trouble = match answer.await {
                    Ok(Ok(answer)) => return Ok(answer),
                    Ok(Err(trouble)) => trouble,
                    Err(_) => return Err(RedisStoreError::no_runtime(&cluster.place)),
                };
                let (next, mode) = cluster.way_on(&node, slot, trouble).await?;
                answer = enqueue(&next, &request, mode);
                node = next;
            }
            Err(RedisStoreError::scattered(&cluster.place, slot))
        }
    }

    /// Asks something else about a key, where that is.
    pub(super) async fn ask_about(
        &self,
        key: &str,
        question: Question<'_>,
        deadline: Duration,
    ) -> Result<Value, RedisStoreError> {
        let slot = slot_of(key);
        let mut node = self.owner(slot, deadline).await?;
        let mut mode = SendMode::Together;
        for _ in 0..MOST_HOPS {
            match node.desk.link().ask(question, deadline, mode).await {
                Ok(answer) => return Ok(answer),
                Err(trouble) => (node, mode) = self.way_on(&node, slot, trouble).await?,
            }
        }
        Err(RedisStoreError::scattered(&self.place, slot))
    }

    /// Where to go after this trouble, if it says; nothing has run then.
    async fn way_on(
        &self,
        from: &Arc<Node>,
        slot: u16,
        trouble: RedisStoreError,
    ) -> Result<(Arc<Node>, SendMode), RedisStoreError> {
        let to = |host: &str, port| self.node(&from.address.endpoint.told(host, port));
        match trouble.way() {
            Some(Redirect::Moved { host, port }) => {
                let node = to(host, *port);
                self.map.send_modify(|map| {
                    if let Map::Known(owners) = map {
                        *owners = Arc::new(owners.with(slot, Arc::clone(&node), Arc::ptr_eq));
                    }
                });
                self.doubt.notify_one();
                Ok((node, SendMode::Together))
            }
            // It has moved already, and its slot has not.
            Some(Redirect::Ask { host, port }) => Ok((to(host, *port), SendMode::Asking)),
            Some(Redirect::TryAgain) => {
                sleep(MOMENT).await;
                Ok((Arc::clone(from), SendMode::Alone))
            }
            None => {
                if trouble.doubts_the_map() {
                    self.doubt.notify_one();
                }
                Err(trouble)
            }
        }
    }

    /// Who has a slot, if that is known now.
    fn known_owner(&self, slot: u16) -> Option<Arc<Node>> {
        match &*self.map.borrow() {
            Map::Known(owners) => owners.of(slot).map(Arc::clone),
            Map::Looking | Map::Unknown(_) => None,
        }
    }

    /// Who has a slot. Waits for the map if it is on its way.
    async fn owner(&self, slot: u16, within: Duration) -> Result<Arc<Node>, RedisStoreError> {
        let owners = self.owners(within).await?;
        owners.of(slot).map(Arc::clone).ok_or_else(|| {
            self.doubt.notify_one();
            RedisStoreError::scattered(&self.place, slot)
        })
    }

    async fn owners(&self, within: Duration) -> Result<Arc<SlotMap<Arc<Node>>>, RedisStoreError> {
        let mut map = self.map.subscribe();
        let known = map.wait_for(|map| !matches!(map, Map::Looking));
        match timeout(within, known).await {
            Ok(Ok(map)) => match &*map {
                Map::Known(owners) => Ok(Arc::clone(owners)),
                Map::Unknown(trouble) => Err(trouble.clone()),
                Map::Looking => Err(RedisStoreError::not_yet(&self.place, within)),
            },
            _ => Err(RedisStoreError::not_yet(&self.place, within)),
        }
    }

    /// The primary at this place, with a desk of its own.
    fn node(&self, endpoint: &Endpoint) -> Arc<Node> {
        let mut nodes = locked(&self.nodes);
        let new = || {
            let address = self.seeds[0].neighbour(endpoint.clone());
            let desk = self.setup.desk(Source::Server(address.clone()));
            Arc::new(Node { address, desk })
        };
        Arc::clone(nodes.entry(endpoint.clone()).or_insert_with(new))
    }

    /// Keeps the map right for as long as there is a cluster.
    async fn keep_map(cluster: Weak<Self>, doubt: Arc<Notify>) {
        let (mut backoff, mut turn) = (Backoff::default(), 0);
        loop {
            sleep(backoff.next()).await;
            let Some(this) = cluster.upgrade() else {
                return;
            };
            let found = this.look(turn).await;
            turn += 1;
            match found {
                Ok(ranges) => this.install(ranges),
                Err(trouble) => {
                    this.map.send_if_modified(|map| {
                        let is_known = matches!(map, Map::Known(_));
                        if !is_known {
                            *map = Map::Unknown(trouble);
                        }
                        !is_known
                    });
                    continue;
                }
            }
            drop(this);
            if timeout(CALM, doubt.notified()).await.is_err() {
                backoff.reset();
                doubt.notified().await;
            }
        }
    }

    /// Asks one after the other, beginning with another one each time: one of them may have been
    /// left behind by the others.
    async fn look(&self, turn: usize) -> Result<Vec<Range>, RedisStoreError> {
        let mut addresses: Vec<Address> = match &*self.map.borrow() {
            Map::Known(owners) => {
                let nodes = owners.nodes().iter();
                nodes.map(|node| node.address.clone()).collect()
            }
            Map::Looking | Map::Unknown(_) => Vec::new(),
        };
        if !addresses.is_empty() {
            let first = turn % addresses.len();
            addresses.rotate_left(first);
        }
        addresses.extend(self.seeds.iter().cloned());
        let mut why = None;
        for address in &addresses {
            match topology::ask(address).await {
                Ok(ranges) if !ranges.is_empty() => return Ok(ranges),
                Ok(_) => {}
                Err(trouble) => why = Some(trouble),
            }
        }
        Err(why.unwrap_or_else(|| RedisStoreError::scattered(&self.place, 0)))
    }

    fn install(&self, ranges: Vec<Range>) {
        let ranges = ranges
            .into_iter()
            .map(|(first, last, endpoint)| (first, last, self.node(&endpoint)));
        let owners = SlotMap::new(ranges, Arc::ptr_eq);
        let mut nodes = locked(&self.nodes);
        // One that is about to get its first slot is not in the map yet, and is in use.
        nodes.retain(|_, node| {
            let has_slots = owners.nodes().iter().any(|owner| Arc::ptr_eq(owner, node));
            has_slots || node.desk.link().is_open()
        });
        drop(nodes);
        self.map.send_replace(Map::Known(Arc::new(owners)));
    }
}

/// Wakes the task that keeps the map, so that it ends.
impl Drop for Cluster {
    fn drop(&mut self) {
        self.doubt.notify_one();
    }
}
