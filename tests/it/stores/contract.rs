//! One suite, every store: what goes around one keeps what it keeps.

use std::sync::Arc;

use tollgate::store::{CircuitBreaker, DenyCache, Leased, contract};
use tollgate::{MemoryStore, Store};

#[tokio::test]
async fn a_deny_cache_keeps_the_contract() {
    let new = async || Arc::new(DenyCache::new(MemoryStore::new())) as Arc<dyn Store>;
    contract::verify(new).await;
}

#[tokio::test]
async fn a_failover_keeps_the_contract() {
    let new = async || Arc::new(CircuitBreaker::new(MemoryStore::new())) as Arc<dyn Store>;
    contract::verify(new).await;
}

#[tokio::test]
async fn both_together_keep_the_contract() {
    let stack = || DenyCache::new(CircuitBreaker::new(MemoryStore::new()));
    contract::verify(async || Arc::new(stack()) as Arc<dyn Store>).await;
}

/// In blocks of one. Larger ones keep all bounds, but what is leased counts as used for whoever
/// looks without asking, so a trace does not read the same to the unit.
#[tokio::test]
async fn leases_of_one_keep_the_contract() {
    let leased = || {
        let leased = Leased::builder(MemoryStore::new()).block_size(1);
        leased.build().unwrap()
    };
    contract::verify(async || Arc::new(leased()) as Arc<dyn Store>).await;
}
