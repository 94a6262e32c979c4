//! Contract of stores, for each decorator.

use std::sync::Arc;

use tollgate::store::{CircuitBreaker, DenyCache, Leased, contract};
use tollgate::{MemoryStore, Store};

#[tokio::test]
async fn deny_cache_keeps_the_contract() {
    let new = async || Arc::new(DenyCache::new(MemoryStore::new())) as Arc<dyn Store>;
    contract::verify(new).await;
}

#[tokio::test]
async fn circuit_breaker_keeps_the_contract() {
    let new = async || Arc::new(CircuitBreaker::new(MemoryStore::new())) as Arc<dyn Store>;
    contract::verify(new).await;
}

#[tokio::test]
async fn deny_cache_around_circuit_breaker_keeps_the_contract() {
    let stack = || DenyCache::new(CircuitBreaker::new(MemoryStore::new()));
    contract::verify(async || Arc::new(stack()) as Arc<dyn Store>).await;
}

/// In blocks of one. Larger blocks keep all bounds, but a peek counts unspent credits as used, so traces
/// differ.
#[tokio::test]
async fn leases_of_one_keep_the_contract() {
    let leased = || {
        let leased = Leased::builder(MemoryStore::new()).block_size(1);
        leased.build().unwrap()
    };
    contract::verify(async || Arc::new(leased()) as Arc<dyn Store>).await;
}

#[tokio::test]
async fn leases_keep_the_contract_of_groups() {
    let new = async || Arc::new(Leased::new(MemoryStore::new())) as Arc<dyn Store>;
    contract::verify_groups(new).await;
}

#[tokio::test]
async fn all_decorators_together_keep_the_contract_of_groups() {
    let stack = || DenyCache::new(Leased::new(CircuitBreaker::new(MemoryStore::new())));
    contract::verify_groups(async || Arc::new(stack()) as Arc<dyn Store>).await;
}
