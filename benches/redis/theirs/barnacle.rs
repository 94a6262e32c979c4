//! A fixed window by `barnacle-rs`, with a pool of connections of its own.

use std::time::Duration;

use barnacle_rs::{
    BarnacleConfig, BarnacleContext, BarnacleKey, BarnacleStore as _, RedisBarnacleStore,
    ResetOnSuccess,
};
use tokio::runtime::Runtime;

use crate::load::{self, Load};
use crate::server::Server;

pub struct Barnacle(RedisBarnacleStore);

impl Barnacle {
    pub fn new(server: &Server) -> Self {
        Self(RedisBarnacleStore::with_pool_config(&server.url(), 16).expect("a valid URL"))
    }

    pub fn run(&self, server: &Server, runtime: &Runtime, tasks: u64, time: Duration) -> Load {
        let store = self.0.clone();
        load::run(server, runtime, tasks, time, move |number| {
            let store = store.clone();
            async move {
                let context = BarnacleContext {
                    key: BarnacleKey::Custom(number.to_string()),
                    path: "/bench".to_owned(),
                    method: "GET".to_owned(),
                };
                let config = BarnacleConfig {
                    max_requests: 1_000_000_000,
                    window: Duration::from_secs(86_400),
                    reset_on_success: ResetOnSuccess::Not,
                };
                let result = store.increment(&context, &config).await;
                result.expect("the server answers");
            }
        })
    }
}
