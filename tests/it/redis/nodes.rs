//! A Redis cluster for one test.

use std::thread;
use std::time::{Duration, Instant};

use tollgate::{RedisStore, RedisStoreBuilder};

use super::{PATIENCE, Server, counter, take, user};

const SLOTS: usize = 16_384;

/// Three primaries, with or without a replica of each.
pub(super) struct Nodes {
    pub(super) servers: Vec<Server>,
}

impl Nodes {
    const PRIMARIES: usize = 3;

    /// Starts three primaries with a node timeout that a busy machine does not reach.
    pub(super) fn start() -> Self {
        Self::start_with(0, "30000", Server::start_on_tcp_with)
    }

    /// Starts three primaries whose clocks can be set.
    pub(super) fn start_with_own_clocks() -> Self {
        Self::start_with(0, "30000", Server::start_with_own_clock)
    }

    /// Starts three primaries that accept TLS only.
    pub(super) fn start_on_tls() -> Self {
        Self::start_with(0, "30000", Server::start_on_tls_with)
    }

    /// Starts three primaries with replicas, and a node timeout of one second.
    pub(super) fn start_with_replicas() -> Self {
        Self::start_with(Self::PRIMARIES, "1000", Server::start_on_tcp_with)
    }

    fn start_with(replicas: usize, node_timeout: &str, start: fn(&[&str]) -> Server) -> Self {
        let servers: Vec<Server> = (0..Self::PRIMARIES + replicas)
            .map(|_| {
                let bus = Server::free_port().to_string();
                start(&[
                    "--cluster-enabled",
                    "yes",
                    "--cluster-node-timeout",
                    node_timeout,
                    "--cluster-port",
                    &bus,
                    "--cluster-replica-validity-factor",
                    "0",
                ])
            })
            .collect();
        let nodes = Self { servers };
        let per_node = SLOTS.div_ceil(Self::PRIMARIES);
        for (number, server) in nodes.servers.iter().enumerate() {
            let epoch = (number + 1).to_string();
            server.run::<String>(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
            if number < Self::PRIMARIES {
                let first = (number * per_node).to_string();
                let last = ((number + 1) * per_node).min(SLOTS) - 1;
                let last = last.to_string();
                server.run::<String>(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            }
            let (port, bus) = (server.address().port().to_string(), server.bus_port());
            nodes.servers[0].run::<String>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        nodes.wait_until("all nodes have met", || {
            let all = nodes.servers.len();
            nodes.servers.iter().all(|server| {
                let known: String = server.run(&["CLUSTER", "NODES"]);
                known
                    .lines()
                    .filter(|line| !line.contains("handshake"))
                    .count()
                    == all
            })
        });
        for replica in 0..replicas {
            let primary = nodes.id(replica);
            let server = &nodes.servers[Self::PRIMARIES + replica];
            server.run::<String>(&["CLUSTER", "REPLICATE", &primary]);
        }
        nodes.wait_until("the cluster is up", || {
            let servers = nodes.servers.iter();
            let mut states = servers.map(|server| server.run::<String>(&["CLUSTER", "INFO"]));
            states.all(|state| state.contains("cluster_state:ok"))
        });
        nodes.wait_until("replicas follow", || {
            nodes.servers[Self::PRIMARIES..].iter().all(|server| {
                let info = server.run::<String>(&["INFO", "replication"]);
                info.contains("role:slave") && info.contains("master_link_status:up")
            })
        });
        nodes
    }

    fn wait_until(&self, what: &str, is_true: impl Fn() -> bool) {
        let started = Instant::now();
        while !is_true() {
            let states: Vec<String> = self
                .servers
                .iter()
                .map(|server| server.run(&["CLUSTER", "NODES"]))
                .collect();
            assert!(started.elapsed() < PATIENCE, "{what}: {states:#?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(super) fn url(&self) -> String {
        let addresses = self
            .servers
            .iter()
            .map(|server| server.address().to_string());
        format!(
            "redis+cluster://{}",
            addresses.collect::<Vec<_>>().join(",")
        )
    }

    /// Returns a store with a long deadline.
    pub(super) fn store(&self) -> RedisStoreBuilder {
        RedisStore::builder(&self.url()).deadline(PATIENCE)
    }

    fn id(&self, number: usize) -> String {
        self.servers[number].run(&["CLUSTER", "MYID"])
    }

    /// Returns the slots of all keys, each with the index of its node.
    pub(super) fn slots_in_use(&self) -> Vec<(u16, usize)> {
        let mut slots = Vec::new();
        for (number, server) in self.servers[..Self::PRIMARIES].iter().enumerate() {
            for key in server.keys() {
                slots.push((server.run(&["CLUSTER", "KEYSLOT", &key]), number));
            }
        }
        slots
    }

    /// Migrates a slot and its keys while it is in use, with the commands of an operator.
    pub(super) fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.begin_move(slot, from, to);
        // During the migration, old keys are on the source and new keys on the target.
        thread::sleep(Duration::from_millis(3));
        self.end_move(slot, from, to);
    }

    pub(super) fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        let (source_id, target_id) = (self.id(from), self.id(to));
        let importing = ["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source_id];
        self.servers[to].run::<String>(&importing);
        let migrating = ["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target_id];
        self.servers[from].run::<String>(&migrating);
    }

    /// Moves the keys of a slot, and then the slot.
    pub(super) fn end_move(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        let (source, target) = (&self.servers[from], &self.servers[to]);
        let port = target.address().port().to_string();
        loop {
            let keys: Vec<String> = source.run(&["CLUSTER", "GETKEYSINSLOT", &slot, "1"]);
            let Some(key) = keys.first() else {
                break;
            };
            let to = ["127.0.0.1", &port, key, "0", "5000", "REPLACE"];
            source.run::<String>(&[&["MIGRATE"], &to[..]].concat());
            thread::sleep(Duration::from_millis(3));
        }
        for server in [target, source] {
            server.run::<String>(&["CLUSTER", "SETSLOT", &slot, "NODE", &self.id(to)]);
        }
    }

    /// Returns 24 callers, grouped by the node that has their counters.
    pub(super) async fn callers_by_node(&self, store: &RedisStore) -> [Vec<String>; 3] {
        let probe = counter("probe", "1000/day");
        let mut callers = [const { Vec::new() }; 3];
        for number in 0..24 {
            let name = format!("caller-{number}");
            let keys = || [0, 1, 2].map(|node| self.servers[node].keys().len());
            let before = keys();
            take(store, &user(&name), &probe).await.unwrap();
            let node = keys()
                .iter()
                .zip(before)
                .position(|(after, before)| *after > before);
            callers[node.unwrap()].push(name);
        }
        callers
    }

    pub(super) fn assert_that_every_key_ends(&self) {
        let role = |server: &Server| server.run::<String>(&["INFO", "replication"]);
        let running = self.servers.iter().filter(|server| server.is_running());
        running
            .filter(|server| role(server).contains("role:master"))
            .for_each(Server::assert_that_every_key_ends);
    }
}
