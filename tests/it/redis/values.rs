//! The value of a key: malformed ones, records of later versions, and how it is written.

use tollgate::policy::{Policy, Rule};
use tollgate::{Batch, Check, Counter, RedisStore, Store as _, Timestamp};

use super::keys::{FIVE, NEW_YEAR, later, log_keys, subject_keys};
use super::{Server, counter, take_at, user};
use crate::support::store_ext::StoreExt as _;

fn set(server: &Server, key: &str, value: &[u8]) {
    let mut set = redis::cmd("SET");
    set.arg(key).arg(value);
    set.query::<()>(&mut server.connect()).unwrap();
}

/// Calls every operation on a counter with a replaced state, and expects a well-formed reply in time.
async fn call_every_operation(store: &RedisStore, counter: &Counter, what: &str) {
    let alice = user("alice");
    let checks = [Check::new(&alice, counter)];
    let batch = Batch::new(&checks).unwrap();
    for verb in 0..4 {
        let answered = match verb {
            0 => store.peek(&batch, NEW_YEAR).await.map(drop),
            1 => store.decide(&batch, NEW_YEAR).await.map(drop),
            2 => store.record(&batch, NEW_YEAR).await.map(drop),
            _ => store.refund(&batch, NEW_YEAR, NEW_YEAR).await,
        };
        answered.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

/// A malformed value counts as absent. It neither blocks a counter for ever nor the server for a second.
#[tokio::test]
async fn malformed_values_count_as_absent() {
    let server = Server::start();
    let store = server.store().use_client_clock().build().unwrap();
    let alice = user("alice");
    for quota in FIVE {
        let five = counter("five", quota);
        let check = Check::new(&alice, &five);
        take_at(&store, &check, NEW_YEAR).await.unwrap();
        let key = subject_keys(&server).remove(0);
        let valid: Vec<u8> = server.run(&["GET", &key]);
        for byte in [0_u8, 1, 0x20, 0x7f, 0xff] {
            for length in 0..130 {
                set(&server, &key, &vec![byte; length]);
                call_every_operation(&store, &five, &format!("{quota}, {length} × {byte}")).await;
            }
            // A record of this counter with another state.
            let mut record = valid.clone();
            record[6..].fill(byte);
            set(&server, &key, &record);
            call_every_operation(&store, &five, &format!("{quota}, state of {byte}")).await;
            store.reset_subject(&alice).await.unwrap();
        }
        // A record with a missing part, or with bytes after it.
        for value in [&valid[..valid.len() - 1], &[&valid[..], b"x"].concat()] {
            set(&server, &key, value);
            let usage = take_at(&store, &check, NEW_YEAR).await.unwrap();
            assert_eq!(usage.used(), 1, "{quota}");
        }
        store.reset_subject(&alice).await.unwrap();
    }
}

/// The hash of a log may be lost, replaced or malformed while the record of its subject is intact.
#[tokio::test]
async fn malformed_logs_count_as_absent() {
    let server = Server::start();
    let store = server.store().use_client_clock().build().unwrap();
    let (alice, log) = (user("alice"), counter("log", "200/hour, sliding-log"));
    let check = Check::new(&alice, &log);
    for second in 0..130 {
        take_at(&store, &check, later(second)).await.unwrap();
    }
    let key = log_keys(&server).remove(0);
    for length in 0..70 {
        for byte in [0_u8, 1, 0x20, 0x7f, 0xff] {
            for field in [b"h".as_slice(), &0_u32.to_le_bytes()] {
                let mut change = redis::cmd("HSET");
                change.arg(&key).arg(field).arg(vec![byte; length]);
                change.query::<i64>(&mut server.connect()).unwrap();
                call_every_operation(&store, &log, &format!("{field:?}, {length} × {byte}")).await;
            }
        }
    }
    server.assert_that_every_key_ends();
    for wrong in [vec!["DEL", &key], vec!["SET", &key, "hello"]] {
        let _: redis::Value = server.run(&wrong);
        let usage = take_at(&store, &check, later(130)).await.unwrap();
        assert_eq!(usage.used(), 1);
        assert_eq!(server.run::<String>(&["TYPE", &key]), "hash");
        server.assert_that_every_key_ends();
    }
    // The reverse: a hash without a record belongs to a counter that was lost.
    server.run::<i64>(&["DEL", &subject_keys(&server)[0]]);
    let usage = take_at(&store, &check, later(131)).await.unwrap();
    assert_eq!(usage.used(), 1);
    server.assert_that_every_key_ends();
}

/// Records of kinds that later versions write are kept unchanged.
#[tokio::test]
async fn records_of_unknown_kinds_are_preserved() {
    let server = Server::start();
    let store = server.store().use_client_clock().build().unwrap();
    let (alice, window, bucket) = (user("alice"), counter("a", FIVE[0]), counter("b", FIVE[4]));
    take_at(&store, &Check::new(&alice, &window), NEW_YEAR)
        .await
        .unwrap();
    let key = server.keys().remove(0);
    let own: Vec<u8> = server.run(&["GET", &key]);
    let mut unknown = b"other".to_vec();
    unknown.extend([5 << 4 | 3]);
    unknown.extend(
        u32::try_from(later(7_200).as_micros() / 1_000_000)
            .unwrap()
            .to_le_bytes(),
    );
    unknown.extend(*b"1234567abc");
    set(&server, &key, &[&unknown[..], &own].concat());
    for (counter, seconds, used) in [
        (&window, 1, 2),
        (&bucket, 1, 1),
        (&window, 1, 3),
        (&bucket, 2, 2),
    ] {
        let check = Check::new(&alice, counter);
        let usage = take_at(&store, &check, later(seconds)).await.unwrap();
        assert_eq!(usage.used(), used);
    }
    let value: Vec<u8> = server.run(&["GET", &key]);
    assert!(value.starts_with(&unknown));
    assert_eq!(value.len(), unknown.len() + 25 + 31);
    let left: u64 = server.run(&["PTTL", &key]);
    assert!(left > 7_100_000, "{left}");
}

/// Within one second a counter is written in place, which keeps the time to live.
#[tokio::test]
async fn time_to_live_is_written_once_a_second() {
    let server = Server::start();
    let store = server.store().use_client_clock().build().unwrap();
    let calls = |command: &str| -> u64 {
        let stats: String = server.run(&["INFO", "commandstats"]);
        let name = format!("cmdstat_{command}:calls=");
        let line = stats.lines().find_map(|line| line.strip_prefix(&name));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    };
    for quota in [FIVE[0], FIVE[1], FIVE[4]] {
        let _: () = server.run(&["CONFIG", "RESETSTAT"]);
        let (alice, five) = (user("alice"), counter("five", quota));
        for micros in [0, 1, 999_999, 1_000_000, 1_000_001] {
            let at = Timestamp::from_micros(NEW_YEAR.as_micros() + micros);
            let usage = take_at(&store, &Check::new(&alice, &five), at)
                .await
                .unwrap();
            assert!(usage.is_allowed());
        }
        // The expiry of a token bucket moves with each charge, here by twelve minutes.
        let sets = if quota == FIVE[4] { 5 } else { 2 };
        assert_eq!(
            (calls("set"), calls("setrange")),
            (sets, 5 - sets),
            "{quota}"
        );
        assert_eq!((calls("pttl"), calls("pexpire")), (0, 0), "{quota}");
        store.reset_subject(&alice).await.unwrap();
    }
}

/// The ids of the two names are equal in the five bytes that are stored.
#[test]
fn policy_with_two_counters_of_one_stored_id_is_rejected() {
    let policy = |names: [&str; 2]| {
        Policy::builder()
            .endpoint("GET /a", Rule::new("5/minute").name(names[0]))
            .endpoint("GET /b", Rule::new("7/minute").name(names[1]))
            .build()
    };
    let error = policy(["rule-1564438", "rule-1914711"]).unwrap_err();
    assert!(error.to_string().contains("same id in Redis"), "{error}");
    policy(["rule-1564438", "rule-1914712"]).unwrap();
}
