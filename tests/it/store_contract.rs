//! One suite, every store.

use std::sync::Arc;

use tollgate::store::contract;
use tollgate::{MemoryStore, Store};

#[tokio::test]
async fn memory_store_keeps_the_contract() {
    contract::verify(async || Arc::new(MemoryStore::new()) as Arc<dyn Store>).await;
}

/// One shard, so that every subject of a batch is behind the same lock.
#[tokio::test]
async fn small_memory_store_keeps_the_contract() {
    let small = || MemoryStore::builder().capacity(600).build().unwrap();
    contract::verify(async || Arc::new(small()) as Arc<dyn Store>).await;
}
