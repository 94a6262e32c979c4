//! Properties of subjects and counters: different ones are never mixed up.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::harness::{Harness, START, counter, user};
use crate::batch::Check;
use crate::key::{Subject, Value};

pub(super) async fn keeps_subjects_apart(harness: &Harness) {
    let counter = counter("apart", "1/minute");
    let long = "x".repeat(5_000);
    let longer = "x".repeat(5_001);
    let address = IpAddr::V4(Ipv4Addr::new(1, 2, 3, 4));
    let subjects = [
        Subject::all(),
        Subject::from(""),
        Subject::from("alice"),
        user("alice"),
        user("Alice"),
        user("bob"),
        Subject::from([("tenant", "alice")]),
        Subject::from([("user", "1.2.3.4")]),
        Subject::from([("ip", "1.2.3.4")]),
        Subject::from([("ip", address)]),
        Subject::from([("ip", Ipv6Addr::LOCALHOST)]),
        Subject::from(7_u64),
        Subject::from(-7),
        Subject::from(i64::MIN),
        Subject::from("7"),
        Subject::from(("a:b", "c")),
        Subject::from(("a", "b:c")),
        Subject::from((("a", "b"), ("c", 7))),
        Subject::from([("group", "g"), ("user", "u")]),
        Subject::from([("user", "u"), ("group", "g")]),
        Subject::from([("groupg", ""), ("user", "u")]),
        Subject::from([("user", long.as_str())]),
        Subject::from([("user", longer.as_str())]),
        Subject::from([("user", "\0\u{1F600}\r\n{}")]),
    ];
    for (index, subject) in subjects.iter().enumerate() {
        let usage = harness.take(Check::new(subject, &counter), START).await;
        harness.same(
            &format!("subject {index} is its own"),
            usage.is_allowed(),
            true,
        );
    }
    for subject in &subjects {
        let usage = harness.take(Check::new(subject, &counter), START).await;
        harness.same("the second time it is the same", usage.is_allowed(), false);
    }
    // One pair is equal: an IPv4 address and its IPv4-mapped form.
    let mapped = Value::Address(IpAddr::V6(Ipv4Addr::new(1, 2, 3, 4).to_ipv6_mapped()));
    let mapped = Subject::from([("ip", mapped)]);
    let usage = harness.take(Check::new(&mapped, &counter), START).await;
    harness.same(
        "a mapped address is its IPv4 form",
        usage.is_allowed(),
        false,
    );
}

pub(super) async fn keeps_counters_apart(harness: &Harness) {
    let alice = user("alice");
    let counters = [
        counter("a", "1/minute"),
        counter("b", "1/minute"),
        counter("a", "1/hour"),
        counter("a", "1/month"),
        counter("a", "1/30d"),
        counter("a", "1/minute, fixed-window"),
        counter("a", "1/minute, sliding-log"),
        counter("a", "1/minute, token-bucket"),
        counter("a", "1/minute, sliding-buckets"),
        counter("a", "1/minute, sliding-buckets, buckets 6"),
    ];
    for counter in &counters {
        let usage = harness.take(Check::new(&alice, counter), START).await;
        harness.same(&counter.quota().to_string(), usage.is_allowed(), true);
        let usage = harness.take(Check::new(&alice, counter), START).await;
        harness.same(&counter.quota().to_string(), usage.is_allowed(), false);
    }
}

pub(super) async fn identifies_a_rule_by_its_name(harness: &Harness) {
    let alice = user("alice");
    let (before, after) = (counter("rule", "5/minute"), counter("rule", "9/minute"));
    harness
        .take(Check::new(&alice, &before).with_cost(5), START)
        .await;
    let usage = harness.see(Check::new(&alice, &after), START).await;
    harness.same("a new amount, the same count", usage.used(), 5);
}
