//! The custom store of the example passes the contract suite.

use std::sync::Arc;

use tollgate::Store;
use tollgate::store::contract;

use super::process::ended;

#[path = "../../../examples/custom_store.rs"]
mod program;

#[tokio::test]
async fn custom_store_keeps_the_contract() {
    let new = async || Arc::new(program::MapStore::default()) as Arc<dyn Store>;
    contract::verify(new).await;
}

#[tokio::test]
async fn example_denies_the_fourth_message() {
    let end = ended("custom_store", &[]).await;
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let lines: Vec<&str> = end.stdout.lines().collect();
    assert_eq!(lines[2], "message 3: sent, 0 left");
    assert_eq!(lines[3], "message 4: too many, 0 left");
    assert_eq!(lines[4], "2 counters are kept");
    program::main().unwrap();
}
