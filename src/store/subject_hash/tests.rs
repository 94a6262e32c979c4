//! Tests of the subject hash.

use std::collections::HashSet;

use siphasher::sip128::{Hasher128 as _, SipHasher13};

use super::*;

/// Subject, counter, cost, limit and order are all part of the hash.
#[test]
fn requests_differ_in_subject_counter_cost_and_limit() {
    let hasher = SubjectHasher::from_keys(1, 2);
    let [hour, minute] = ["5/hour", "5/minute"].map(|quota| {
        let quota = quota.parse().expect("valid");
        Counter::new("rule", quota).expect("valid")
    });
    let more = hour.quota().with_amount(6).expect("valid");
    let subjects = [
        Subject::from("alice"),
        Subject::from("bob"),
        Subject::from([("user", "alice")]),
        Subject::from(7_u64),
    ];
    let mut prints = HashSet::new();
    for subject in &subjects {
        let check = Check::new(subject, &hour);
        let other = Check::new(subject, &minute);
        for checks in [
            vec![check],
            vec![other],
            vec![check.with_cost(2)],
            vec![check.with_quota(&more)],
            vec![check, other],
            vec![other, check],
        ] {
            let batch = Batch::new(&checks).expect("valid");
            let RequestFingerprint(first, second) = hasher.request_of(&batch);
            prints.insert((first, second));
        }
    }
    assert_eq!(prints.len(), subjects.len() * 6);
}

/// A text is hashed byte for byte after the word of its kind.
#[test]
fn fingerprint_of_a_text_is_its_siphash_128() {
    let hasher = SubjectHasher::from_keys(1, 2);
    let text: String = ('!'..='~').collect();
    for len in 0..text.len() {
        let text = &text[..len];
        let mut theirs = SipHasher13::new_with_keys(1, 2);
        theirs.write_u64(1);
        theirs.write(text.as_bytes());
        let ours = hasher.fingerprint(&Subject::from(text));
        assert_eq!(
            (ours.place, ours.rest),
            theirs.finish128().as_u64(),
            "{text}"
        );
    }
}

/// An IPv4 address and its IPv6-mapped form are equal. No address equals a number, a text or another
/// address, with names of up to seven bytes and longer ones.
#[test]
fn addresses_collide_with_no_other_kind() {
    let hasher = SubjectHasher::from_keys(1, 2);
    let print = |subject: &Subject<'_>| {
        let Fingerprint { place, rest } = hasher.fingerprint(subject);
        (place, rest)
    };
    let addresses = [
        "0.0.0.0",
        "1.0.0.0",
        "0.0.0.1",
        "::",
        "::1",
        "1::",
        "::1:0:0:0:0",
    ];
    let names = ["", "\0", "a", "ip", "sevenof", "eightofi", "nineofitt"];
    let mut prints = HashSet::new();
    for name in names {
        for address in addresses {
            let address: IpAddr = address.parse().unwrap();
            assert!(
                prints.insert(print(&Subject::from([(name, address)]))),
                "{name}"
            );
        }
        for number in [0, 1, 1 << 24, 1_u64 << 32] {
            assert!(prints.insert(print(&Subject::from([(name, number)]))));
        }
        for text in ["", "\0\0\0\0", "\0\0\0\0\0\0\0\0", "0.0.0.0", "::"] {
            assert!(
                prints.insert(print(&Subject::from([(name, text)]))),
                "{name}"
            );
        }
        let mapped: IpAddr = "::ffff:1.0.0.0".parse().unwrap();
        assert!(
            !prints.insert(print(&Subject::from([(name, mapped)]))),
            "{name}"
        );
    }
}

/// Subjects of different kinds with the same bytes have different hashes.
#[test]
fn kinds_do_not_collide() {
    let hasher = SubjectHasher::from_keys(1, 2);
    let mut prints = HashSet::new();
    let texts = ["a", "\u{2}", "\0\0\0\0\0\0\0\0", "\u{1}\0\0\0\0\0\0\0"];
    for text in texts {
        for subject in [
            Subject::from(text),
            Subject::from([("", text), ("", "")]),
            Subject::from([(text, "")]),
            Subject::from([(text, 0_u64)]),
        ] {
            let Fingerprint { place, rest } = hasher.fingerprint(&subject);
            assert!(prints.insert((place, rest)), "{text:?}");
        }
    }
    let Fingerprint { place, rest } = hasher.fingerprint(&Subject::all());
    assert!(prints.insert((place, rest)));
}

/// Texts of up to 40 bytes that differ in one byte, or only in where a dimension ends.
#[test]
fn every_byte_is_part_of_the_fingerprint() {
    let hasher = SubjectHasher::from_keys(1, 2);
    let (mut subjects, mut prints) = (HashSet::new(), HashSet::new());
    for (len, at) in (0..40_usize).flat_map(|len| (0..len.max(1)).map(move |at| (len, at))) {
        let text: String = (0..len).map(|i| if i == at { 'b' } else { 'a' }).collect();
        let (left, right) = text.split_at(at);
        for dimensions in [
            vec![("", text.as_str())],
            vec![(text.as_str(), "")],
            vec![("", left), ("", right)],
            vec![(left, right)],
        ] {
            let values: Vec<_> = dimensions
                .iter()
                .map(|(name, value)| (*name, Value::from(*value)))
                .collect();
            let subject = Subject::from_dimensions(&values).expect("one or two");
            let Fingerprint { place, rest } = hasher.fingerprint(&subject);
            prints.insert((place, rest));
            let owned = |(name, value): &(&str, &str)| format!("{name}={value}");
            subjects.insert(dimensions.iter().map(owned).collect::<Vec<_>>());
        }
    }
    assert_eq!(prints.len(), subjects.len());
}

/// Batches have up to 24 checks; all of them are part of the hash.
#[test]
fn requests_differ_in_the_last_of_24_checks() {
    use crate::batch::{Group, MAX_BATCH, MAX_CHECKS};

    let hasher = SubjectHasher::from_keys(1, 2);
    let subject = Subject::from("alice");
    let counters: Vec<Counter> = (0..MAX_BATCH)
        .map(|number| Counter::new(&format!("rule-{number}"), "5/hour".parse().expect("valid")))
        .map(|counter| counter.expect("valid"))
        .collect();
    let groups = [Group::Live, Group::DryRun(0), Group::DryRun(1)];
    let mut checks: Vec<Check<'_>> = counters
        .iter()
        .enumerate()
        .map(|(index, counter)| {
            Check::new(&subject, counter).with_group(groups[index / MAX_CHECKS])
        })
        .collect();
    let hash = |checks: &[Check<'_>]| hasher.request_of(&Batch::new(checks).expect("valid"));
    let before = hash(&checks);
    checks[MAX_BATCH - 1] = checks[MAX_BATCH - 1].with_cost(2);
    assert!(hash(&checks) != before);
    let [first] = hasher.fingerprints::<1>(&checks);
    assert!(hasher.fingerprints::<MAX_BATCH>(&checks)[MAX_BATCH - 1] == first);
}
