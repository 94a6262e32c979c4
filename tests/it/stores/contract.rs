//! One suite, every store: what goes around one keeps what it keeps.

use std::sync::Arc;

use tollgate::store::{DenyCache, Failover, contract};
use tollgate::{MemoryStore, Store};

#[tokio::test]
async fn a_deny_cache_keeps_the_contract() {
    let new = async || Arc::new(DenyCache::new(MemoryStore::new())) as Arc<dyn Store>;
    contract::verify(new).await;
}

#[tokio::test]
async fn a_failover_keeps_the_contract() {
    let new = async || Arc::new(Failover::new(MemoryStore::new())) as Arc<dyn Store>;
    contract::verify(new).await;
}

#[tokio::test]
async fn both_together_keep_the_contract() {
    let stack = || DenyCache::new(Failover::new(MemoryStore::new()));
    contract::verify(async || Arc::new(stack()) as Arc<dyn Store>).await;
}
