//! Many threads and tasks admit exactly the limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tollgate::{
    Batch, Check, Counter, Limiter, ManualClock, MemoryStore, Quota, Store, Subject, Timestamp,
};

const NOW: Timestamp = Timestamp::from_secs(1_735_689_600);
const ALGORITHMS: [&str; 5] = [
    "sliding-window",
    "fixed-window",
    "sliding-buckets",
    "sliding-log",
    "token-bucket",
];

/// Five algorithms × 8 threads × 150,000 decisions on one key: six million.
#[test]
fn eight_threads_on_one_key_get_exactly_the_limit() {
    const THREADS: u64 = 8;
    const EACH: u64 = 150_000;
    const LIMIT: u64 = 10_007;
    for algorithm in ALGORITHMS {
        let limiter = Limiter::builder()
            .quota(format!("{LIMIT}/hour, {algorithm}").as_str())
            .clock(ManualClock::new())
            .build()
            .unwrap();
        let admitted = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        let decision = limiter.check("hot").wait().unwrap();
                        admitted.fetch_add(u64::from(decision.is_allowed()), Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(admitted.into_inner(), LIMIT, "{algorithm}");
    }
}

/// 64 tasks on a multi-threaded runtime, a million decisions on one key.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn sixty_four_tasks_on_one_key_get_exactly_the_limit() {
    const TASKS: u64 = 64;
    const EACH: u64 = 16_000;
    const LIMIT: u64 = 99_991;
    let limiter = Limiter::builder()
        .quota(Quota::per_hour(LIMIT).unwrap())
        .clock(ManualClock::new())
        .build()
        .unwrap();
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let mut admitted = 0;
                for round in 0..EACH {
                    let decision = limiter.check("hot").await.unwrap();
                    admitted += u64::from(decision.is_allowed());
                    if round % 1_000 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                admitted
            })
        })
        .collect();
    let mut admitted = 0;
    for task in tasks {
        admitted += task.await.unwrap();
    }
    assert_eq!(admitted, LIMIT);
}

/// Batches over a user, a tenant and the whole instance from 8 threads, in every order: four million
/// decisions. A charged batch is charged to all three, so users, tenants and instance admit the same
/// total. A deadlock would hang the test.
#[test]
fn overlapping_batches_are_charged_as_one() {
    const THREADS: usize = 8;
    const EACH: usize = 500_000;
    const USERS: usize = 16;
    const TENANTS: usize = 4;
    let store = Arc::new(MemoryStore::new());
    let per_user = Counter::new("user", Quota::per_hour(9_000).unwrap()).unwrap();
    let per_tenant = Counter::new("tenant", Quota::per_hour(30_000).unwrap()).unwrap();
    let per_all = Counter::new("all", Quota::per_hour(100_003).unwrap()).unwrap();
    let names: Vec<String> = (0..USERS).map(|number| format!("user-{number}")).collect();
    let users: Vec<_> = names
        .iter()
        .map(|name| Subject::from([("user", name.as_str())]))
        .collect();
    let tenants: Vec<_> = (0..TENANTS as u64)
        .map(|number| Subject::from([("tenant", number)]))
        .collect();
    let all = Subject::all();

    let admitted = AtomicU64::new(0);
    thread::scope(|scope| {
        for worker in 0..THREADS {
            let (store, admitted) = (&store, &admitted);
            let (users, tenants, all) = (&users, &tenants, &all);
            let (per_user, per_tenant, per_all) = (&per_user, &per_tenant, &per_all);
            scope.spawn(move || {
                let mut mine = 0;
                for round in 0..EACH {
                    let user = (round.wrapping_mul(31) + worker) % USERS;
                    let mut checks = [
                        Check::new(&users[user], per_user),
                        Check::new(&tenants[user % TENANTS], per_tenant),
                        Check::new(all, per_all),
                    ];
                    checks.rotate_left(round % 3);
                    let batch = Batch::new(&checks).unwrap();
                    mine += u64::from(store.decide(&batch, NOW).wait().unwrap().is_allowed());
                }
                admitted.fetch_add(mine, Ordering::Relaxed);
            });
        }
    });

    let used = |subject: &Subject<'_>, counter: &Counter| {
        let checks = [Check::new(subject, counter)];
        let batch = Batch::new(&checks).unwrap();
        store.peek(&batch, NOW).wait().unwrap().usages()[0].used()
    };
    let admitted = admitted.into_inner();
    assert_eq!(
        admitted, 100_003,
        "the limit of the instance is the lowest, and used up"
    );
    assert_eq!(used(&all, &per_all), admitted);
    assert_eq!(
        users.iter().map(|user| used(user, &per_user)).sum::<u64>(),
        admitted
    );
    assert_eq!(
        tenants
            .iter()
            .map(|tenant| used(tenant, &per_tenant))
            .sum::<u64>(),
        admitted
    );
}
