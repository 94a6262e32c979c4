//! Clocks that differ or are set back, on real servers whose clocks are stopped.

#![expect(
    clippy::print_stdout,
    reason = "`scripts/test-faults` shows what was measured"
)]

use std::time::Duration;

use tollgate::{Batch, Check, Outcome, RedisStore, Store as _, Timestamp, Usages};

use super::nodes::Nodes;
use super::{Server, counter, user};
use crate::support::store_ext::StoreExt as _;

/// The middle of a window of two seconds, and of any longer one.
const START: Timestamp = Timestamp::from_secs(1_900_000_001);
const LIMIT: u64 = 10;
const QUOTAS: [&str; 5] = [
    "10/2s, fixed-window",
    "10/2s",
    "10/2s, sliding-buckets, buckets 10",
    "10/2s, sliding-log",
    "10/2s, token-bucket",
];

fn at_offset(millis: i64) -> Timestamp {
    START.offset_by(millis * 1_000)
}

async fn decide(store: &RedisStore, names: &[&str], quota: &str) -> Usages {
    let counter = counter("api", quota);
    let subjects: Vec<_> = names.iter().map(|name| user(name)).collect();
    let checks: Vec<_> = subjects
        .iter()
        .map(|subject| Check::new(subject, &counter))
        .collect();
    let batch = Batch::new(&checks).unwrap();
    store.decide(&batch, Timestamp::EPOCH).await.unwrap()
}

/// Callers on two nodes of a cluster, and how many requests of each were admitted.
struct TwoCallers<'a> {
    store: &'a RedisStore,
    names: [&'a str; 2],
    admitted: [u64; 2],
}

impl<'a> TwoCallers<'a> {
    async fn new(store: &'a RedisStore, names: [&'a str; 2]) -> Self {
        for name in names {
            store.reset_subject(&user(name)).await.unwrap();
        }
        Self {
            store,
            names,
            admitted: [0; 2],
        }
    }

    /// Sends requests that charge both callers, and requests that charge one of them, in turn.
    async fn send(&mut self, quota: &str, rounds: usize) {
        let [first, second] = self.names;
        for round in 0..rounds {
            let (names, charged): (&[&str], &[usize]) = match round % 4 {
                0 | 2 => (&[first, second], &[0, 1]),
                1 => (&[second], &[1]),
                _ => (&[first], &[0]),
            };
            if decide(self.store, names, quota).await.is_allowed() {
                for caller in charged {
                    self.admitted[*caller] += 1;
                }
            }
        }
    }
}

/// Bug: a batch over two nodes moved the counters of the slower node ahead of its clock. The next
/// request of that node alone took this for a clock that was set back: 200 of 200 were admitted.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_with_different_clocks_admit_no_more_than_the_limit() {
    let nodes = Nodes::start_with_own_clocks();
    let store = nodes.store().prefix("skew").build().unwrap();
    let callers = nodes.callers_by_node(&store).await;
    // Within the second in which instants are shared, and beyond it in both directions. Shared instants
    // move a counter on by up to 800 ms, in which a token bucket refills 4.
    for (offsets, refill) in [
        ([0, 400, -400], 4),
        ([0, 2_000, -2_000], 0),
        ([0, -5_000, 90_000], 0),
    ] {
        for (server, millis) in nodes.servers.iter().zip(offsets) {
            server.stop_clock(at_offset(millis));
            assert_eq!(server.time(), at_offset(millis));
        }
        for (one, other) in [(0, 1), (1, 2), (2, 0)] {
            for quota in QUOTAS {
                let names = [callers[one][0].as_str(), &callers[other][0]];
                let mut two = TwoCallers::new(&store, names).await;
                two.send(quota, 60).await;
                let bounds = LIMIT..=LIMIT + refill;
                for admitted in two.admitted {
                    assert!(
                        bounds.contains(&admitted),
                        "{quota}, {offsets:?}: {admitted}"
                    );
                }
            }
        }
    }
}

/// A real step back of one node of two admits one additional window at most, while requests share the
/// instants of both nodes.
#[tokio::test(flavor = "multi_thread")]
async fn step_back_of_one_node_admits_one_more_window_at_most() {
    let nodes = Nodes::start_with_own_clocks();
    let store = nodes.store().prefix("skew").build().unwrap();
    let callers = nodes.callers_by_node(&store).await;
    for quota in QUOTAS {
        for step in [-1_200, -8_000, -30_000] {
            for server in &nodes.servers {
                server.stop_clock(START);
            }
            let mut two = TwoCallers::new(&store, [&callers[0][0], &callers[1][0]]).await;
            two.send(quota, 60).await;
            assert_eq!(two.admitted, [LIMIT; 2], "{quota}");
            nodes.servers[1].stop_clock(at_offset(step));
            two.send(quota, 60).await;
            let [one, other] = two.admitted;
            assert_eq!(one, LIMIT, "{quota}, {step} ms");
            assert!(other <= 2 * LIMIT, "{quota}, {step} ms: {other}");
        }
    }
}

/// Bug: a step of 8 s rejected all callers for 8 s, while `Retry-After` was shorter.
#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_true_after_a_real_step_back() {
    let server = Server::start_with_own_clock(&[]);
    let store = server.store().build().unwrap();
    for quota in QUOTAS {
        server.stop_clock(START);
        while decide(&store, &["alice"], quota).await.is_allowed() {}
        server.stop_clock(at_offset(-8_000));
        let usages = decide(&store, &["alice"], quota).await;
        let (denied, at) = (usages.usages()[0], usages.at());
        assert_eq!(denied.outcome(), Outcome::Denied, "{quota}");
        assert_eq!(at, at_offset(-8_000), "{quota}");
        let wait = denied.reset_at().duration_since(at);
        // The window, and one of its buckets.
        assert!(wait <= Duration::from_millis(2_200), "{quota}: {wait:?}");
        server.stop_clock(denied.reset_at());
        let usages = decide(&store, &["alice"], quota).await;
        assert!(usages.is_allowed(), "{quota}: {usages:?} after {wait:?}");
        println!("{quota}: after a step of -8 s denied for {wait:?}, then admitted");
        store.reset_subject(&user("alice")).await.unwrap();
    }
}
