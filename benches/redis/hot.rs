//! One hot subject, through store decorators.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tollgate::store::Leased;
use tollgate::{
    Batch, Check, Clock as _, Counter, DenyCache, MemoryStore, RedisStore, Store, Subject,
    SystemClock,
};

use crate::load::{self, Load};
use crate::server::Server;

/// A store, and the counter that is decided.
#[derive(Clone)]
pub struct Hot {
    store: Arc<dyn Store>,
    counter: Arc<Counter>,
    clock: SystemClock,
}

impl Hot {
    /// Every decision is a call to the server.
    pub fn bare(server: &Server, runtime: &Runtime, quota: &str) -> Self {
        Self::of(redis(server, runtime), quota)
    }

    pub fn leased(server: &Server, runtime: &Runtime, quota: &str, block: u64) -> Self {
        let leased = Leased::builder(redis(server, runtime)).block_size(block);
        Self::of(leased.build().expect("a valid store"), quota)
    }

    /// The subject is blocked: each decision is a denial.
    pub fn denied(server: &Server, runtime: &Runtime) -> Self {
        Self::of(DenyCache::new(redis(server, runtime)), "1/day").used_up(runtime)
    }

    /// Decided in the memory of the process.
    pub fn denied_by_memory(runtime: &Runtime) -> Self {
        Self::of(MemoryStore::new(), "1/day").used_up(runtime)
    }

    fn of(store: impl Store, quota: &str) -> Self {
        let quota = quota.parse().expect("a valid quota");
        Self {
            store: Arc::new(store),
            counter: Arc::new(Counter::new("hot", quota).expect("a valid name")),
            clock: SystemClock::new(),
        }
    }

    fn used_up(self, runtime: &Runtime) -> Self {
        runtime.block_on(self.decide());
        assert!(!runtime.block_on(self.decide()), "it is used up");
        self
    }

    /// Whether it is allowed.
    async fn decide(&self) -> bool {
        let subject = Subject::from("hot");
        let check = [Check::new(&subject, &self.counter)];
        let batch = Batch::new(&check).expect("one check");
        let usages = self.store.decide(&batch, self.clock.now()).await;
        usages.expect("the server answers").is_allowed()
    }

    pub fn run(&self, server: &Server, runtime: &Runtime, tasks: u64, time: Duration) -> Load {
        let hot = self.clone();
        load::run(server, runtime, tasks, time, move |_| {
            let hot = hot.clone();
            async move {
                hot.decide().await;
            }
        })
    }
}

fn redis(server: &Server, runtime: &Runtime) -> RedisStore {
    let store = RedisStore::builder(&server.url())
        .prefix("hot")
        .deadline(Duration::from_secs(10))
        .coalescing(false);
    runtime.block_on(async { store.build().expect("a valid store") })
}
