//! Decisions by tollgate.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tollgate::{Batch, Check, Counter, RedisStore, Store as _, Subject, Timestamp};

use crate::load::{self, Load};
use crate::server::Server;

/// A store with one counter for every subject.
#[derive(Clone)]
pub struct Ours {
    store: Arc<RedisStore>,
    counter: Arc<Counter>,
}

impl Ours {
    pub fn new(server: &Server, runtime: &Runtime, quota: &str, coalescing: bool) -> Self {
        let quota = quota.parse().expect("a valid quota");
        let store = RedisStore::builder(&server.url())
            .prefix("ours")
            .deadline(Duration::from_secs(10))
            .coalescing(coalescing);
        let store = runtime.block_on(async { store.build().expect("a valid store") });
        let ours = Self {
            store: Arc::new(store),
            counter: Arc::new(Counter::new("bench", quota).expect("a valid name")),
        };
        // Loads the script into the server.
        runtime.block_on(ours.decide(0));
        ours
    }

    pub async fn decide(&self, number: u64) {
        let subject = Subject::from(number);
        let check = [Check::new(&subject, &self.counter)];
        let batch = Batch::new(&check).expect("one check");
        let usages = self.store.decide(&batch, Timestamp::EPOCH).await;
        assert!(usages.expect("the server answers").is_allowed());
    }

    pub fn run(&self, server: &Server, runtime: &Runtime, tasks: u64, time: Duration) -> Load {
        let ours = self.clone();
        load::run(server, runtime, tasks, time, move |number| {
            let ours = ours.clone();
            async move { ours.decide(number).await }
        })
    }
}
