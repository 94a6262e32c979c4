//! Model checks of the locking in the memory store: all interleavings that loom explores.
//!
//! Needs `RUSTFLAGS="--cfg tollgate_loom"`, which replaces the locks of the store by those of loom.

#![cfg(all(test, tollgate_loom))]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use tollgate::{Batch, Check, Counter, MemoryStore, Quota, Store, StoreAdmin, Subject, Timestamp};

const NOW: Timestamp = Timestamp::from_secs(1_735_689_600);

/// Two shards and fixed keys, because a model must run the same way each time. Of the subjects 0 to 5,
/// 2 and 4 are in the second shard.
fn store(capacity: usize) -> MemoryStore {
    store_of(2, capacity)
}

fn store_of(shards: usize, capacity: usize) -> MemoryStore {
    MemoryStore::builder()
        .capacity(capacity)
        .insecure_fixed_layout(shards, (1, 2))
        .build()
        .unwrap()
}

fn counter(amount: u64) -> Counter {
    Counter::new("model", Quota::per_hour(amount).unwrap()).unwrap()
}

fn decide(store: &MemoryStore, subjects: &[u64], counter: &Counter) -> bool {
    let subjects: Vec<_> = subjects
        .iter()
        .map(|number| Subject::from(*number))
        .collect();
    let checks: Vec<_> = subjects
        .iter()
        .map(|subject| Check::new(subject, counter))
        .collect();
    let batch = Batch::new(&checks).unwrap();
    store.decide(&batch, NOW).wait().unwrap().is_allowed()
}

fn used(store: &MemoryStore, subject: u64, counter: &Counter) -> u64 {
    let subject = Subject::from(subject);
    let checks = [Check::new(&subject, counter)];
    let batch = Batch::new(&checks).unwrap();
    store.peek(&batch, NOW).wait().unwrap().usages()[0].used()
}

/// Two batches over the same subjects in opposite order: no deadlock, and one takes everything.
#[test]
fn opposite_orders_neither_deadlock_nor_tear() {
    loom::model(|| {
        let (store, counter) = (Arc::new(store(100)), counter(1));
        let other = {
            let (store, counter) = (Arc::clone(&store), counter.clone());
            thread::spawn(move || decide(&store, &[3, 2, 1, 0], &counter))
        };
        let mine = decide(&store, &[0, 1, 2, 3], &counter);
        let theirs = other.join().unwrap();
        assert!(mine ^ theirs, "one of them takes everything");
        for subject in 0..4 {
            assert_eq!(used(&store, subject, &counter), 1);
        }
    });
}

/// Overlapping batches of three threads on a limit of two: exactly two are admitted.
#[test]
fn overlapping_batches_admit_exactly_the_limit() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let (store, counter) = (Arc::new(store(100)), counter(2));
        let admitted = Arc::new(AtomicU64::new(0));
        // All three share subject 1, which is in the first shard; the others are in both. (If they
        // shared a subject in the second shard, a batch with only that one would try the first lock in
        // order to sweep it, and loom treats a thread that tries a lock as one that waits for it.)
        let others: Vec<_> = [[1, 0], [2, 1]]
            .into_iter()
            .map(|subjects| {
                let (store, counter, admitted) =
                    (Arc::clone(&store), counter.clone(), Arc::clone(&admitted));
                thread::spawn(move || {
                    let allowed = decide(&store, &subjects, &counter);
                    admitted.fetch_add(u64::from(allowed), Ordering::SeqCst);
                })
            })
            .collect();
        let allowed = decide(&store, &[3, 1], &counter);
        admitted.fetch_add(u64::from(allowed), Ordering::SeqCst);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(admitted.load(Ordering::SeqCst), 2);
        assert_eq!(used(&store, 1, &counter), 2);
        assert_eq!(
            [0, 2, 3]
                .into_iter()
                .map(|subject| used(&store, subject, &counter))
                .sum::<u64>(),
            2
        );
    });
}

/// A full store and two new counters at once: never more counters than the capacity.
#[test]
fn new_counters_never_exceed_the_capacity() {
    loom::model(|| {
        let (store, counter) = (Arc::new(store(2)), counter(10));
        assert!(decide(&store, &[0, 2], &counter));
        let other = {
            let (store, counter) = (Arc::clone(&store), counter.clone());
            thread::spawn(move || decide(&store, &[5], &counter))
        };
        assert!(decide(&store, &[4], &counter));
        assert!(other.join().unwrap());
        assert!(store.len().wait().unwrap() <= 2);
    });
}

/// A decision, a reset and a sweep at the same time leave a counter that adds up.
#[test]
fn upkeep_runs_beside_decisions() {
    loom::model(|| {
        let (store, counter) = (Arc::new(store(100)), counter(10));
        assert!(decide(&store, &[0, 2], &counter));
        let other = {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                store.sweep(NOW).wait().unwrap();
                store.reset_subject(&Subject::from(0_u64)).wait().unwrap();
            })
        };
        assert!(decide(&store, &[2, 0], &counter));
        other.join().unwrap();
        assert_eq!(used(&store, 2, &counter), 2);
        let left = used(&store, 0, &counter);
        assert!(
            left <= 1,
            "reset before or after the second charge, never during: {left}"
        );
        assert_eq!(
            store.len().wait().unwrap(),
            1 + usize::try_from(left).unwrap()
        );
    });
}

/// A batch that its last check denies is never seen in the counters of the others.
#[test]
fn denied_batch_is_never_visible() {
    loom::model(|| {
        let (store, counter) = (Arc::new(store(100)), counter(2));
        assert!(decide(&store, &[0, 2, 3], &counter));
        assert!(decide(&store, &[3], &counter));
        let other = {
            let (store, counter) = (Arc::clone(&store), counter.clone());
            thread::spawn(move || decide(&store, &[0, 2, 3], &counter))
        };
        assert!(decide(&store, &[2, 0], &counter), "there is room for one");
        assert!(!other.join().unwrap(), "there is none left for the third");
        for subject in [0, 2, 3] {
            assert_eq!(used(&store, subject, &counter), 2);
        }
    });
}

/// Single checks and a batch on the same counters admit exactly the limit.
#[test]
fn single_checks_run_beside_batches() {
    loom::model(|| {
        let (store, counter) = (Arc::new(store(100)), counter(2));
        assert!(decide(&store, &[0, 2], &counter));
        let other = {
            let (store, counter) = (Arc::clone(&store), counter.clone());
            thread::spawn(move || decide(&store, &[2, 0], &counter))
        };
        let subject = Subject::from(0_u64);
        let check = Check::new(&subject, &counter);
        let checks = [check];
        let usages = store.decide(&Batch::new(&checks).unwrap(), NOW).wait();
        let usage = usages.unwrap().usages()[0];
        let both = other.join().unwrap();
        assert!(usage.is_allowed() ^ both, "there is room for one");
        assert_eq!(used(&store, 0, &counter), 2);
        assert_eq!(used(&store, 2, &counter), 1 + u64::from(both));
    });
}

/// Starts a thread with enough stack for a batch of more than four checks: 128 KiB.
fn spawn_for_large_batch<T: Send + 'static>(
    run: impl FnOnce() -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    const WORDS: usize = 16 * 1_024;
    let builder = thread::Builder::new().stack_size(WORDS);
    builder.spawn(run).unwrap()
}

/// Batches over more than two shards, with sweeping.
#[test]
fn batches_over_many_shards_neither_deadlock_nor_tear() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let (store, counter) = (Arc::new(store_of(8, 100)), counter(2));
        let subjects = [0, 1, 2, 3, 4, 5];
        let others = {
            let (store, counter) = (Arc::clone(&store), counter.clone());
            spawn_for_large_batch(move || {
                let mut backwards = subjects;
                backwards.reverse();
                [
                    decide(&store, &backwards, &counter),
                    decide(&store, &backwards[..3], &counter),
                ]
            })
        };
        let mine = {
            let (store, counter) = (Arc::clone(&store), counter.clone());
            spawn_for_large_batch(move || decide(&store, &subjects, &counter))
        };
        let mine = mine.join().unwrap();
        let [theirs, more] = others.join().unwrap();
        assert!(theirs && mine ^ more, "the limit admits two of three");
        for subject in subjects {
            let charged = 1 + u64::from(mine) + u64::from(more && subject > 2);
            assert_eq!(used(&store, subject, &counter), charged);
        }
    });
}

/// All counters are blocked: two new keys share the overflow counter of their shard.
#[test]
fn new_keys_share_the_overflow_counter() {
    loom::model(|| {
        let (store, counter) = (Arc::new(store_of(1, 1)), counter(1));
        assert!(decide(&store, &[0], &counter));
        let other = {
            let (store, counter) = (Arc::clone(&store), counter.clone());
            thread::spawn(move || decide(&store, &[1], &counter))
        };
        let mine = decide(&store, &[2], &counter);
        let theirs = other.join().unwrap();
        assert!(mine ^ theirs, "the overflow counter admits one limit");
        assert_eq!(store.len().wait().unwrap(), 2);
        assert_eq!(used(&store, 0, &counter), 1);
    });
}
