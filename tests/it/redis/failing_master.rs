//! Layers of several processes on a cluster, one master of which fails. Only callers whose slots are on
//! that master follow the failure mode of their rules.

#![expect(
    clippy::print_stdout,
    reason = "`scripts/test-faults` shows what was measured"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use futures_util::future::join_all;
use tokio::time::sleep;
use tollgate::{Identity, RateLimitLayer, RedisStore, Store, StoreHealth};

use super::nodes::Nodes;
use super::{PATIENCE, RECOVERY, Server, policy_per_failure_mode};
use crate::support::http::{echo, send};
use crate::support::log::Log;

const LIMIT: usize = 10;
const PROCESSES: usize = 3;
/// Long enough that a busy machine causes no late replies.
const DEADLINE: Duration = Duration::from_millis(500);
const OUTAGE: Duration = Duration::from_secs(3);
/// Additional time on a busy machine.
const SLOW_MACHINE: Duration = Duration::from_secs(2);

/// One process of a fleet: a service with a layer and a store of its own.
struct Process {
    app: Router,
    store: Arc<dyn Store>,
}

impl Process {
    /// Limits each caller to 10 requests a day under each of three rules, one per failure mode.
    fn start(url: &str) -> Self {
        let policy = policy_per_failure_mode("10/day, fixed-window");
        let store = RedisStore::builder(url)
            .deadline(DEADLINE)
            .connect()
            .unwrap();
        let layer = RateLimitLayer::builder(policy)
            .store(Arc::clone(&store))
            .identify_with(|head| Some(Identity::user(head.header("x-user")?)))
            .build()
            .unwrap();
        Self {
            app: echo().layer(layer),
            store,
        }
    }

    async fn status(&self, mode: &str, caller: &str) -> u16 {
        let line = format!("GET /{mode}");
        send(&self.app, &line, &[("x-user", caller)]).await.status
    }

    fn why_degraded(&self) -> Option<String> {
        match self.store.health() {
            StoreHealth::Degraded { why, .. } => Some(why.to_string()),
            _ => None,
        }
    }
}

/// Sends 12 requests of a caller through each process at once. Returns the statuses, sorted.
async fn burst(fleet: &[Process], mode: &str, caller: &str) -> Vec<u16> {
    let requests = fleet
        .iter()
        .flat_map(|process| (0..12).map(move |_| process.status(mode, caller)));
    let mut statuses = join_all(requests).await;
    statuses.sort_unstable();
    statuses
}

fn count(statuses: &[u16], status: u16) -> usize {
    statuses.iter().filter(|found| **found == status).count()
}

/// Asserts that the shared limit admits exactly [`LIMIT`] requests of the fleet, and that none fails.
async fn assert_exact(fleet: &[Process], mode: &str, caller: &str) {
    let statuses = burst(fleet, mode, caller).await;
    let found = [200, 429].map(|status| count(&statuses, status));
    assert_eq!(
        found,
        [LIMIT, PROCESSES * 12 - LIMIT],
        "{caller} under {mode}: {statuses:?}"
    );
}

async fn wait_for_health(fleet: &[Process], healthy: bool, within: Duration) {
    let started = Instant::now();
    while fleet
        .iter()
        .any(|process| process.store.health().is_healthy() != healthy)
    {
        let found: Vec<_> = fleet.iter().map(Process::why_degraded).collect();
        assert!(started.elapsed() < within, "{found:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

async fn assert_only_one_master_fails(fail: fn(&mut Server), recover: fn(&mut Server)) {
    let (log, _listening) = Log::listen();
    let mut nodes = Nodes::start();
    for server in &nodes.servers {
        // Without this, the other masters reject all requests once they agree that one has failed.
        server.run::<String>(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
        server.run::<String>(&["CONFIG", "SET", "cluster-node-timeout", "1000"]);
    }
    let probe_store = nodes.store().prefix("probe_store").build().unwrap();
    let [first, failing, last] = nodes.callers_by_node(&probe_store).await;
    let healthy: Vec<&String> = first.iter().chain(&last).collect();
    let fleet = [(); PROCESSES].map(|()| Process::start(&nodes.url()));
    for caller in healthy.iter().copied().chain(&failing) {
        for process in &fleet {
            assert_eq!(process.status("", caller).await, 200, "the server is up");
        }
    }
    let addresses = [0, 1, 2].map(|node| nodes.servers[node].address().to_string());

    fail(&mut nodes.servers[1]);
    let (started, mut allowed, mut rounds) = (Instant::now(), 0, 0);
    while started.elapsed() < OUTAGE {
        // All callers of the failing node send requests through all processes.
        let mut rejected = Vec::new();
        for process in &fleet {
            rejected.push(process.status("deny", &failing[0]));
            rejected.push(process.status("deny", &failing[1]));
        }
        assert_eq!(count(&join_all(rejected).await, 503), 2 * PROCESSES);
        let admitted = burst(&fleet, "allow", &failing[2]).await;
        assert_eq!(count(&admitted, 200), PROCESSES * 12, "{admitted:?}");
        let local = burst(&fleet, "local", &failing[3]).await;
        assert_eq!(count(&local, 503), 0, "{local:?}");
        allowed += count(&local, 200);
        let caller = healthy.get(rounds % healthy.len()).unwrap();
        if rounds < healthy.len() {
            for mode in ["deny", "allow", "local"] {
                assert_exact(&fleet, mode, caller).await;
            }
        } else {
            let statuses = burst(&fleet, "deny", caller).await;
            assert_eq!(count(&statuses, 429), PROCESSES * 12, "{statuses:?}");
        }
        rounds += 1;
    }
    for caller in healthy.iter().skip(rounds) {
        assert_exact(&fleet, "allow", caller).await;
    }
    assert!(allowed <= PROCESSES * LIMIT, "{allowed} counted locally");
    wait_for_health(&fleet, false, PATIENCE).await;
    for process in &fleet {
        let why = process.why_degraded().unwrap();
        let named = addresses.each_ref().map(|address| why.contains(address));
        assert_eq!(named, [false, true, false], "{why}");
    }

    // One event per process and second, and one for the start.
    let failed = log.about("rate_limit_store_failed");
    let seconds = usize::try_from(started.elapsed().as_secs()).unwrap() + 1;
    assert!(
        failed.len() <= PROCESSES * (seconds + 1),
        "{}",
        failed.len()
    );
    for event in &failed {
        assert!(event.contains(&addresses[1]), "{event}");
    }
    let recovered = log.about("rate_limit_store_recovered");
    assert_eq!(recovered.len(), 0, "{recovered:?}");

    recover(&mut nodes.servers[1]);
    // A restarted master rejects requests until it is connected to the others.
    while !nodes.servers[1]
        .run::<String>(&["CLUSTER", "INFO"])
        .contains("cluster_state:ok")
    {
        assert!(started.elapsed() < PATIENCE, "the master does not join");
        sleep(Duration::from_millis(20)).await;
    }
    wait_for_health(&fleet, true, RECOVERY + SLOW_MACHINE).await;
    for caller in &failing[4..] {
        assert_exact(&fleet, "deny", caller).await;
    }
    let recovered = log.about("rate_limit_store_recovered");
    assert!(recovered.len() <= PROCESSES, "{recovered:?}");
    println!(
        "{rounds} rounds in {:?}: callers of healthy masters admitted exactly {LIMIT}, none got 503; \
         {} failure events, {} recovery events; one caller counted locally was admitted {allowed} times",
        started.elapsed(),
        failed.len(),
        recovered.len(),
    );
}

#[tokio::test]
async fn frozen_master_affects_only_callers_of_its_slots() {
    assert_only_one_master_fails(
        |server| server.signal("STOP"),
        |server| server.signal("CONT"),
    )
    .await;
}

#[tokio::test]
async fn killed_master_affects_only_callers_of_its_slots() {
    assert_only_one_master_fails(Server::kill, Server::launch).await;
}

/// Returns the number of rounds in tests that repeat faults. `scripts/test-faults` runs more.
fn rounds() -> usize {
    std::env::var("TOLLGATE_TEST_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap())
}

/// After an outage and a time without requests, the first burst is counted exactly by the shared limit.
#[tokio::test]
async fn first_burst_after_an_idle_outage_is_counted_exactly() {
    let server = Server::start();
    let fleet = [(); PROCESSES].map(|()| Process::start(&server.url()));
    for process in &fleet {
        assert_eq!(process.status("", "first").await, 200);
    }
    for round in 0..rounds() {
        server.signal("STOP");
        let started = Instant::now();
        while fleet
            .iter()
            .any(|process| process.store.health().is_healthy())
        {
            assert!(started.elapsed() < PATIENCE);
            for process in &fleet {
                assert_eq!(process.status("deny", "outage").await, 503);
            }
        }
        server.signal("CONT");
        sleep(Duration::from_millis(2_500)).await;
        let healthy = fleet
            .iter()
            .map(|process| process.store.health().is_healthy());
        assert!(healthy.eq([true; PROCESSES]), "recovery needs no requests");
        for mode in ["deny", "allow", "local"] {
            assert_exact(&fleet, mode, &format!("round-{round}")).await;
        }
        println!("round {round}: admitted exactly {LIMIT} per rule after freeze and thaw");
    }
}
