//! Work of the server for long sliding logs, measured in commands that the script calls.

use std::collections::HashMap;

use tollgate::{Batch, Check, Store as _};

use super::keys::later;
use super::{Server, counter, user};

/// Entries of a log, and the chunks they are in.
const ENTRIES: u64 = 6_400;
const CHUNKS: u64 = 100;

/// Calls per command since the last reset of the statistics.
fn calls(server: &Server) -> HashMap<String, u64> {
    let stats: String = server.run(&["INFO", "commandstats"]);
    let _: () = server.run(&["CONFIG", "RESETSTAT"]);
    let line = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
    };
    stats.lines().filter_map(line).collect()
}

fn count(calls: &HashMap<String, u64>, command: &str) -> u64 {
    calls.get(command).copied().unwrap_or(0)
}

/// A peek skips expired chunks without reading them. A denial deletes them once. Bug: each
/// denial and each peek read all of them.
#[tokio::test]
async fn expired_chunks_are_neither_read_nor_kept() {
    let server = Server::start();
    let store = server.store().use_client_clock().build().unwrap();
    let alice = user("alice");
    let log = counter("log", "6400/2h, sliding-log");
    let check = Check::new(&alice, &log);
    let one = [check];
    let one = Batch::new(&one).unwrap();
    for second in 0..ENTRIES {
        let usages = store.decide(&one, later(second)).await.unwrap();
        assert!(usages.is_allowed());
    }
    let key = server.keys().into_iter().find(|key| !key.ends_with('}'));
    let key = key.unwrap();
    assert_eq!(server.run::<u64>(&["HLEN", &key]), CHUNKS);
    let large = [check.with_cost(ENTRIES)];
    let large = Batch::new(&large).unwrap();

    // Half of the entries have expired.
    let half = later(7_200 + ENTRIES / 2);
    calls(&server);
    let peeked = store.peek(&one, half).await.unwrap();
    assert_eq!(peeked.usages()[0].used(), ENTRIES / 2 - 1);
    let found = calls(&server);
    // Two binary searches over the chunks: with the cost and without it.
    assert!(count(&found, "hget") <= 20, "{found:?}");
    assert_eq!(count(&found, "hdel") + count(&found, "hset"), 0);

    // The first denial deletes them. The second finds none.
    for round in 0..2 {
        let denied = store.decide(&large, half).await.unwrap();
        assert_eq!(denied.usages()[0].used(), ENTRIES / 2 - 1);
        assert_eq!(denied.usages()[0].reset_at(), later(7_200 + ENTRIES - 1));
        let found = calls(&server);
        assert!(count(&found, "hget") <= 20, "{found:?}");
        assert_eq!(count(&found, "hdel"), u64::from(round == 0));
        assert_eq!(server.run::<u64>(&["HLEN", &key]), CHUNKS / 2);
        calls(&server);
    }

    // All entries have expired.
    let end = later(7_200 + ENTRIES);
    let peeked = store.peek(&one, end).await.unwrap();
    assert_eq!(peeked.usages()[0].used(), 0);
    let found = calls(&server);
    assert!(count(&found, "hget") <= 2, "{found:?}");
    let usages = store.decide(&one, end).await.unwrap();
    assert_eq!(usages.usages()[0].used(), 1);
    let found = calls(&server);
    assert!(count(&found, "hget") <= 2, "{found:?}");
    assert_eq!(server.run::<u64>(&["HLEN", &key]), 1);
    server.assert_that_every_key_ends();
}
