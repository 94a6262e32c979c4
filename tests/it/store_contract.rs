//! The contract suite for the memory store.

use std::sync::Arc;

use tollgate::store::contract;
use tollgate::{MemoryStore, Store};

#[tokio::test]
async fn memory_store_keeps_the_contract() {
    let new_store = async || Arc::new(MemoryStore::new()) as Arc<dyn Store>;
    contract::verify(new_store).await;
}

/// One shard, so that all subjects of a batch are behind the same lock.
#[tokio::test]
async fn small_memory_store_keeps_the_contract() {
    let small = || MemoryStore::builder().capacity(600).build().unwrap();
    let new_store = async || Arc::new(small()) as Arc<dyn Store>;
    contract::verify(new_store).await;
}
