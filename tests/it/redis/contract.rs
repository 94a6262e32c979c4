//! The Redis store passes the contract suite that every store passes.

use std::sync::Arc;

use tollgate::Store;
use tollgate::store::contract;

use super::Server;

#[tokio::test(flavor = "multi_thread")]
async fn redis_store_keeps_the_contract() {
    let server = Server::start();
    let new =
        async || Arc::new(server.store().use_client_clock().build().unwrap()) as Arc<dyn Store>;
    contract::verify(new).await;
    server.assert_that_every_key_ends();
}
