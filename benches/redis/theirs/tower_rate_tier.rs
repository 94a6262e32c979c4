//! A token bucket by `tower-rate-tier`, on one connection.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::ConnectionManager;
use tokio::runtime::Runtime;
use tower_rate_tier::storage::Storage as _;
use tower_rate_tier::{Quota, RedisStorage, StorageKey};

use crate::load::{self, Load};
use crate::server::Server;

pub struct TowerRateTier(Arc<RedisStorage<ConnectionManager>>);

impl TowerRateTier {
    pub fn new(server: &Server, runtime: &Runtime) -> Self {
        let client = redis::Client::open(server.url()).expect("a valid URL");
        let connected = runtime.block_on(client.get_connection_manager());
        let storage = RedisStorage::new(connected.expect("the server is there"));
        Self(Arc::new(storage.timeout(Duration::from_secs(10))))
    }

    pub fn run(&self, server: &Server, runtime: &Runtime, tasks: u64, time: Duration) -> Load {
        let storage = Arc::clone(&self.0);
        load::run(server, runtime, tasks, time, move |number| {
            let storage = Arc::clone(&storage);
            async move { decide(&storage, number, Quota::per_second(1_000_000)).await }
        })
    }

    /// Decides once on a bucket that refills slowly, so that its key exists for as long.
    pub fn decide_slowly(&self, runtime: &Runtime) {
        runtime.block_on(decide(&self.0, 0, Quota::per_second(1)));
    }
}

async fn decide(storage: &RedisStorage<ConnectionManager>, number: u64, quota: Quota) {
    let user = number.to_string();
    let key = StorageKey::new(&user, "free");
    let decided = storage.check_and_update(key, &quota, 1, 0).await;
    assert!(decided.expect("the server answers").is_ok());
}
