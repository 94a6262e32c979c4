//! Sliding logs, which have two keys, in a slot that is being moved.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::sleep;

use super::nodes::Nodes;
use super::{counter, look, take, user};
use crate::support::store_ext::StoreExt as _;

const LIMIT: u64 = 2;

/// Bug: the first request of a caller to a log failed a few milliseconds after the move had begun, and
/// until it ended.
#[tokio::test(flavor = "multi_thread")]
async fn new_log_is_decided_when_its_slot_has_moved() {
    let nodes = Nodes::start();
    let store = Arc::new(nodes.store().build().unwrap());
    let (plain, log) = (
        counter("plain", "9/day"),
        counter("log", "2/day, sliding-log"),
    );
    // Callers with and without a key of another counter.
    for has_key in [true, false] {
        let name = format!("alice-{has_key}");
        take(&store, &user(&name), &plain).await.unwrap();
        let slots = nodes.slots_in_use();
        let [(slot, from)] = slots[..] else {
            panic!("{slots:?}");
        };
        if !has_key {
            store.reset_subject(&user(&name)).await.unwrap();
        }
        // Its deadline passes before the end of the move: nothing is charged.
        let hasty = nodes.store().deadline(Duration::from_millis(200));
        let hasty = hasty.build().unwrap();
        while !hasty.is_connected() {
            sleep(Duration::from_millis(5)).await;
        }
        let to = (from + 1) % 3;
        nodes.begin_move(slot, from, to);
        for _ in 0..3 {
            take(&hasty, &user(&name), &log).await.unwrap_err();
        }

        let requests = (0..2 * LIMIT).map(|_| {
            let (store, log, name) = (Arc::clone(&store), log.clone(), name.clone());
            tokio::spawn(async move { take(&store, &user(&name), &log).await })
        });
        let requests = join_all(requests.collect::<Vec<_>>());
        sleep(Duration::from_millis(200)).await;
        nodes.end_move(slot, from, to);
        let mut admitted = 0;
        for usage in requests.await {
            admitted += u64::from(usage.unwrap().unwrap().is_allowed());
        }
        assert_eq!(admitted, LIMIT);
        assert_eq!(look(&store, &user(&name), &log).await.used(), LIMIT);
        store.clear().await.unwrap();
    }
}
