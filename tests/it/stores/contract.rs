//! One suite, every store: what goes around one keeps what it keeps.

use std::sync::Arc;

use tollgate::store::{DenyCache, contract};
use tollgate::{MemoryStore, Store};

#[tokio::test]
async fn a_deny_cache_keeps_the_contract() {
    let new = async || Arc::new(DenyCache::new(MemoryStore::new())) as Arc<dyn Store>;
    contract::verify(new).await;
}
