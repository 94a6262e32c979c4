//! Exactness in a cluster: slots, redirects, failovers, batches over several nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tollgate::store::contract;
use tollgate::{
    Batch, Check, Counter, Override, RedisStore, Store, StoreErrorKind, Subject, Timestamp,
};

use super::nodes::Nodes;
use super::{PATIENCE, Server, counter, look, take, user};
use crate::support::store_ext::StoreExt as _;

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_keeps_the_contract() {
    let nodes = Nodes::start();
    let number = AtomicU64::new(0);
    let new = async || {
        let prefix = format!("test-{}", number.fetch_add(1, Ordering::SeqCst));
        let store = nodes.store().prefix(&prefix).use_client_clock();
        Arc::new(store.build().unwrap()) as Arc<dyn Store>
    };
    contract::verify(new).await;
    nodes.assert_that_every_key_ends();
}

/// Twenty subjects, which are on all nodes of the cluster.
fn names() -> Vec<String> {
    (0..20).map(|number| format!("user-{number}")).collect()
}

async fn fill(store: &RedisStore, counter: &Counter) {
    for name in names() {
        take(store, &user(&name), counter).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_are_counted_and_cleared() {
    let nodes = Nodes::start();
    let store = nodes.store().build().unwrap();
    let daily = counter("daily", "100/day");
    fill(&store, &daily).await;
    for server in &nodes.servers {
        assert!(!server.keys().is_empty(), "each node has some keys");
    }
    assert_eq!(store.len().await.unwrap(), 20);
    store.reset_subject(&user("user-7")).await.unwrap();
    assert_eq!(store.len().await.unwrap(), 19);
    assert!(store.is_connected());
    assert_eq!(look(&store, &user("user-8"), &daily).await.used(), 1);
    store.clear().await.unwrap();
    assert_eq!(store.len().await.unwrap(), 0);
}

/// Overrides are in a slot of their own, on any node.
#[tokio::test(flavor = "multi_thread")]
async fn overrides_reach_every_store_of_the_cluster() {
    let nodes = Nodes::start();
    let [mine, yours] = [(); 2].map(|()| nodes.store().build().unwrap());
    let new = Override::new(user("alice"), "daily", "500/day").unwrap();
    mine.set_override(new.clone()).await.unwrap();
    let known = |store: &RedisStore| store.override_list(Timestamp::EPOCH);
    let started = Instant::now();
    while known(&yours) != [new.clone()] {
        assert!(started.elapsed() < PATIENCE, "{:?}", known(&yours));
        sleep(Duration::from_millis(10)).await;
    }
    assert!(
        yours
            .remove_override(&user("alice"), "daily")
            .await
            .unwrap()
    );
    assert!(known(&yours).is_empty());
}

/// Users of one tenant have counters on different nodes. Concurrent requests exceed neither the
/// limit of a user nor that of the tenant. Charges of denied requests are refunded.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_over_several_nodes_is_charged_whole_or_not_at_all() {
    const OF_TENANT: u64 = 70;
    const OF_USER: u64 = 6;
    let nodes = Nodes::start();
    let store = Arc::new(nodes.store().build().unwrap());
    let per_user = Arc::new(counter("user", "6/day, sliding-log"));
    let per_tenant = Arc::new(counter("tenant", "70/day, sliding-log"));
    let tasks: Vec<_> = (0..320)
        .map(|number| {
            let store = Arc::clone(&store);
            let (per_user, per_tenant) = (Arc::clone(&per_user), Arc::clone(&per_tenant));
            tokio::spawn(async move {
                let name = format!("user-{}", number % 20);
                let (user, acme) = (user(&name), Subject::from([("tenant", "acme")]));
                let checks = [Check::new(&user, &per_user), Check::new(&acme, &per_tenant)];
                let batch = Batch::new(&checks).unwrap();
                let usages = store.decide(&batch, Timestamp::EPOCH).await.unwrap();
                assert_eq!(usages.usages().len(), 2);
                (number % 20, usages.is_allowed())
            })
        })
        .collect();
    let mut admitted = [0; 20];
    for task in tasks {
        let (number, is_allowed) = task.await.unwrap();
        admitted[number] += u64::from(is_allowed);
    }
    let together: u64 = admitted.iter().sum();
    assert!(together <= OF_TENANT, "{together}");
    assert!(together >= OF_USER, "{together}");
    for (name, admitted) in names().iter().zip(admitted) {
        assert!(admitted <= OF_USER, "{admitted}");
        let used = look(&store, &user(name), &per_user).await.used();
        assert_eq!(used, admitted, "{name}");
    }
    let acme = Subject::from([("tenant", "acme")]);
    assert_eq!(look(&store, &acme, &per_tenant).await.used(), together);
    nodes.assert_that_every_key_ends();
}

/// The usages of a batch over several nodes equal those of a batch on one server, for any node that denies.
#[tokio::test(flavor = "multi_thread")]
async fn denial_by_one_node_has_the_usages_of_all_nodes() {
    let nodes = Nodes::start();
    let store = nodes.store().build().unwrap();
    let (wide, narrow) = (counter("wide", "10/day"), counter("narrow", "2/day"));
    for denying in 0..4 {
        // Each round denies on another node, in the order of slots.
        let names: Vec<String> = (0..4).map(|number| format!("{denying}-{number}")).collect();
        let subjects: Vec<Subject<'_>> = names.iter().map(|name| user(name)).collect();
        let checks: Vec<Check<'_>> = subjects
            .iter()
            .enumerate()
            .map(|(number, subject)| {
                Check::new(subject, if number == denying { &narrow } else { &wide })
            })
            .collect();
        let batch = Batch::new(&checks).unwrap();
        for round in 1..=4 {
            let usages = store.decide(&batch, Timestamp::EPOCH).await.unwrap();
            assert_eq!(usages.is_allowed(), round <= 2);
            for (number, usage) in usages.usages().iter().enumerate() {
                assert_eq!(usage.used(), round.min(2));
                assert_eq!(usage.is_allowed(), number != denying || round <= 2);
            }
        }
    }
}

/// Returns a caller whose counters are on this node.
async fn caller_on(nodes: &Nodes, node: usize, store: &RedisStore) -> String {
    let probe = counter("probe", "100/day");
    for name in names() {
        let before = nodes.servers[node].keys().len();
        take(store, &user(&name), &probe).await.unwrap();
        if nodes.servers[node].keys().len() > before {
            return name;
        }
    }
    panic!("no caller is on node {node}");
}

/// Denials of the other nodes hold. Their charges are refunded if the batch fails. `record` charges
/// the nodes that it reaches.
#[tokio::test(flavor = "multi_thread")]
async fn killed_node_does_not_decide_for_the_others() {
    let mut nodes = Nodes::start();
    let store = nodes.store().build().unwrap();
    let mut of_nodes = Vec::new();
    for node in 0..3 {
        of_nodes.push(caller_on(&nodes, node, &store).await);
    }
    let [first, failed, last] = [0, 1, 2].map(|node| user(&of_nodes[node]));
    let (wide, narrow) = (counter("wide", "10/day"), counter("narrow", "1/day"));
    take(&store, &first, &narrow).await.unwrap();
    nodes.servers[1].kill();

    let checks = [Check::new(&first, &narrow), Check::new(&failed, &wide)];
    let batch = Batch::new(&checks).unwrap();
    let usages = store.decide(&batch, Timestamp::EPOCH).await.unwrap();
    let allowed = usages.usages().iter().map(tollgate::Usage::is_allowed);
    assert!(allowed.eq([false, true]), "{usages:?}");

    let checks = [Check::new(&first, &wide), Check::new(&failed, &wide)];
    let batch = Batch::new(&checks).unwrap();
    store.decide(&batch, Timestamp::EPOCH).await.unwrap_err();
    assert_eq!(look(&store, &first, &wide).await.used(), 0);

    let checks = [Check::new(&failed, &wide), Check::new(&last, &wide)];
    let batch = Batch::new(&checks).unwrap();
    store.record(&batch, Timestamp::EPOCH).await.unwrap_err();
    assert_eq!(look(&store, &last, &wide).await.used(), 1);
}

/// Slots migrate while they are used. No request fails and no count is lost.
#[tokio::test(flavor = "multi_thread")]
async fn slots_move_under_load_and_nothing_is_lost() {
    const LIMIT: u64 = 1_000;
    let nodes = Arc::new(Nodes::start());
    let store = Arc::new(nodes.store().build().unwrap());
    let limited = counter("limited", "1000/day");
    fill(&store, &limited).await;
    let done = Arc::new(AtomicBool::new(false));
    let load: Vec<_> = names()
        .into_iter()
        .chain(names())
        .map(|name| {
            let (store, limited) = (Arc::clone(&store), limited.clone());
            let done = Arc::clone(&done);
            tokio::spawn(async move {
                let mut admitted = 0;
                while !done.load(Ordering::SeqCst) && admitted < LIMIT {
                    let usage = take(&store, &user(&name), &limited).await.unwrap();
                    admitted += u64::from(usage.is_allowed());
                }
                (name, admitted)
            })
        })
        .collect();
    let moving = Arc::clone(&nodes);
    tokio::task::spawn_blocking(move || {
        for _ in 0..2 {
            for (slot, node) in moving.slots_in_use() {
                moving.move_slot(slot, node, (node + 1) % 3);
            }
        }
    })
    .await
    .unwrap();
    done.store(true, Ordering::SeqCst);
    let mut admitted = std::collections::HashMap::new();
    for task in load {
        let (name, by_task) = task.await.unwrap();
        *admitted.entry(name).or_insert(1) += by_task;
    }
    for (name, admitted) in admitted {
        let used = look(&store, &user(&name), &limited).await.used();
        assert_eq!(used, admitted, "{name}");
        assert!(admitted <= LIMIT, "{admitted}");
    }
    assert_eq!(store.len().await.unwrap(), 20);
    nodes.assert_that_every_key_ends();
}

/// A primary fails, its replica takes over, and the old primary returns as a replica.
#[tokio::test(flavor = "multi_thread")]
async fn store_follows_a_replica_that_takes_over() {
    const DEADLINE: Duration = Duration::from_millis(50);
    let mut nodes = Nodes::start_with_replicas();
    let store = Arc::new(nodes.store().deadline(DEADLINE).build().unwrap());
    let many = counter("many", "1000000/day");
    charge_all_until_success(&store, &many).await;
    let done = Arc::new(AtomicBool::new(false));
    let load: Vec<_> = names()
        .into_iter()
        .map(|name| {
            let (store, many) = (Arc::clone(&store), many.clone());
            let done = Arc::clone(&done);
            tokio::spawn(async move {
                while !done.load(Ordering::SeqCst) {
                    let started = Instant::now();
                    let answer = take(&store, &user(&name), &many).await;
                    let took = started.elapsed();
                    let slow_machine = Duration::from_secs(2);
                    assert!(took < DEADLINE + slow_machine, "{took:?}: {answer:?}");
                    sleep(Duration::from_millis(2)).await;
                }
            })
        })
        .collect();
    nodes.servers[0].kill();
    charge_all_until_success(&store, &many).await;
    // It returns at the same address, and is a replica now.
    nodes.servers[0].launch();
    let started = Instant::now();
    let role = || nodes.servers[0].run::<String>(&["INFO", "replication"]);
    while !role().contains("role:slave") {
        assert!(started.elapsed() < PATIENCE);
        sleep(Duration::from_millis(20)).await;
    }
    charge_all_until_success(&store, &many).await;
    done.store(true, Ordering::SeqCst);
    for task in load {
        task.await.unwrap();
    }
    nodes.assert_that_every_key_ends();
}

/// Charges every subject, and repeats until no request fails.
async fn charge_all_until_success(store: &RedisStore, counter: &Counter) {
    let started = Instant::now();
    'again: loop {
        for name in names() {
            if let Err(error) = take(store, &user(&name), counter).await {
                assert!(started.elapsed() < PATIENCE, "{error}");
                sleep(Duration::from_millis(5)).await;
                continue 'again;
            }
        }
        return;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_cluster_fails_at_once() {
    let seed = Server::free_port();
    let url = format!("redis+cluster://127.0.0.1:{seed}");
    let store = RedisStore::builder(&url).build().unwrap();
    let many = counter("many", "1000000/day");
    let started = Instant::now();
    loop {
        let error = take(&store, &user("alice"), &many).await.unwrap_err();
        if error.to_string().contains("cannot be reached") {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{error}");
    }
    assert!(!store.is_connected());
    // Requests fail at once, without waiting for a connection.
    let started = Instant::now();
    for _ in 0..50 {
        take(&store, &user("alice"), &many).await.unwrap_err();
    }
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "{:?}",
        started.elapsed()
    );
}

/// The error names the right URL scheme for a cluster URL of a single server, and the reverse. With the URL
/// of one server, it is permanent: as an outage, callers of the other nodes passed uncounted for ever.
#[tokio::test(flavor = "multi_thread")]
async fn url_of_the_wrong_kind_is_reported() {
    let many = counter("many", "1000000/day");
    let single = Server::start_on_tcp();
    let url = format!("redis+cluster://{}", single.address());
    let store = RedisStore::builder(&url)
        .deadline(PATIENCE)
        .build()
        .unwrap();
    let error = take(&store, &user("alice"), &many).await.unwrap_err();
    assert!(
        error.to_string().contains("cluster support disabled"),
        "{error}"
    );
    let nodes = Nodes::start();
    let url = format!("redis://{}", nodes.servers[0].address());
    let store = RedisStore::builder(&url)
        .deadline(PATIENCE)
        .build()
        .unwrap();
    let mut rejected = 0;
    for name in names() {
        if let Err(error) = take(&store, &user(&name), &many).await {
            assert!(error.to_string().contains("redis+cluster://"), "{error}");
            assert_eq!(error.kind(), StoreErrorKind::Permanent, "{error}");
            rejected += 1;
        }
    }
    assert!(rejected > 0);
}
