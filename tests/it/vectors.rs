//! The test vectors that every store is put through, whatever language it decides in.
//!
//! They are written by the reference model, never by the code they are for:
//! `TOLLGATE_BLESS=1 cargo test --test it vectors` writes them anew. Without it, the files must
//! equal the model, and the crate must equal the files.

mod cases;
mod random;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Once;

use serde_json::Value;
use tollgate::{Algorithm, Outcome, Quota};

use crate::properties::counters::{Counts, Deed, Op, Plain, Stored};
use crate::reference::{ModelUsage, Reference};
use crate::support::root;

/// A counter and what is done to it.
struct Case {
    name: String,
    quota: Quota,
    deeds: Vec<Deed>,
}

const ALGORITHMS: [Algorithm; 5] = [
    Algorithm::FixedWindow,
    Algorithm::SlidingWindow,
    Algorithm::SlidingBuckets,
    Algorithm::SlidingLog,
    Algorithm::TokenBucket,
];

#[test]
fn the_vectors_are_what_the_model_says() {
    for algorithm in ALGORITHMS {
        let written = write(algorithm, &cases(algorithm));
        assert!(
            written.len() < 200_000,
            "{algorithm}: {} bytes",
            written.len()
        );
        assert!(
            kept(algorithm) == written,
            "{algorithm}.json differs from the model; TOLLGATE_BLESS=1 writes it anew"
        );
    }
}

#[test]
fn plain_states_answer_the_vectors() {
    for_each_case(|quota, name, steps| answers(&mut Plain::new(&quota), &quota, name, steps));
}

/// Without a clock that remembers, too: the vectors that turn it back do so where a state
/// cannot be wrong about it.
#[test]
fn states_that_remember_no_clock_answer_the_vectors() {
    for_each_case(|quota, name, steps| {
        answers(&mut Plain::without_clock(&quota), &quota, name, steps);
    });
}

#[test]
fn the_memory_store_answers_the_vectors() {
    for_each_case(|quota, name, steps| answers(&mut Stored::new(&quota), &quota, name, steps));
}

fn cases(algorithm: Algorithm) -> Vec<Case> {
    let mut cases = cases::chosen(algorithm);
    cases.extend(random::cases(algorithm));
    for case in &cases {
        assert_eq!(case.quota.algorithm(), algorithm, "{}", case.name);
    }
    cases
}

/// The file as it is; written before anybody reads it, if that was asked for.
fn kept(algorithm: Algorithm) -> String {
    static BLESS: Once = Once::new();
    BLESS.call_once(|| {
        if std::env::var_os("TOLLGATE_BLESS").is_some() {
            for algorithm in ALGORITHMS {
                let written = write(algorithm, &cases(algorithm));
                std::fs::write(path(algorithm), written).expect("the vectors can be written");
            }
        }
    });
    std::fs::read_to_string(path(algorithm)).expect("the vectors can be read")
}

fn path(algorithm: Algorithm) -> PathBuf {
    let folder = root().join("src/store/contract/vectors");
    folder.join(format!("{algorithm}.json"))
}

/// One line per step, so that a difference is one, too.
fn write(algorithm: Algorithm, cases: &[Case]) -> String {
    let cases = cases.iter().map(|case| {
        let mut reference = Reference::default();
        let steps = case.deeds.iter().map(|deed| {
            let result = deed.apply(&mut reference);
            format!("  {}", step(&case.quota, deed, result))
        });
        let steps: Vec<String> = steps.collect();
        format!(
            "{{\"name\":\"{}\",\"quota\":\"{}\",\"steps\":[\n{}\n]}}",
            case.name,
            case.quota,
            steps.join(",\n")
        )
    });
    let cases: Vec<String> = cases.collect();
    format!(
        "{{\"algorithm\":\"{algorithm}\",\"cases\":[\n{}\n]}}\n",
        cases.join(",\n")
    )
}

fn step(quota: &Quota, deed: &Deed, result: Option<ModelUsage>) -> String {
    let (op, charged_at) = match deed.op {
        Op::Decide => ("decide", None),
        Op::Peek => ("peek", None),
        Op::Record => ("record", None),
        Op::Refund(charged_at) => ("refund", Some(charged_at)),
    };
    let mut text = format!(
        "{{\"op\":\"{op}\",\"at\":{},\"cost\":{}",
        deed.at, deed.cost
    );
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(text, ",\"{name}\":{value}");
        }
    };
    let other = (deed.quota != *quota).then(|| deed.quota.amount().to_string());
    add("charged_at", charged_at.map(|at| at.to_string()));
    add("amount", other);
    add(
        "expect",
        result.map(|result| {
            format!(
                "{{\"outcome\":\"{}\",\"limit\":{},\"used\":{},\"reset_at\":{}}}",
                outcome_name(result.outcome),
                result.limit,
                result.used,
                result.reset_at
            )
        }),
    );
    text + "}"
}

fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Allowed => "allowed",
        Outcome::Denied => "denied",
        _ => "never",
    }
}

fn for_each_case(mut run: impl FnMut(Quota, &str, &[Value])) {
    for algorithm in ALGORITHMS {
        let file: Value = serde_json::from_str(&kept(algorithm)).expect("the vectors are JSON");
        assert_eq!(file["algorithm"], algorithm.name());
        let cases = file["cases"].as_array().expect("a list of cases");
        assert!(cases.len() >= 8, "{algorithm}");
        for case in cases {
            let quota = case["quota"].as_str().expect("a quota");
            let quota: Quota = quota.parse().expect("a valid quota");
            let name = format!("{algorithm}, {}", case["name"]);
            run(
                quota,
                &name,
                case["steps"].as_array().expect("a list of steps"),
            );
        }
    }
}

fn answers(counter: &mut impl Counts, quota: &Quota, name: &str, steps: &[Value]) {
    for (index, step) in steps.iter().enumerate() {
        let deed = read(step, quota);
        let result = deed.apply(counter);
        let expect = step.get("expect");
        assert_eq!(result.is_some(), expect.is_some(), "{name}, step {index}");
        if let (Some(result), Some(expect)) = (result, expect) {
            let found = (
                outcome_name(result.outcome),
                result.limit,
                result.used,
                result.reset_at,
            );
            let outcome = expect["outcome"].as_str().expect("an outcome");
            let wanted = (
                outcome,
                number(expect, "limit"),
                number(expect, "used"),
                number(expect, "reset_at"),
            );
            assert_eq!(found, wanted, "{name}, step {index}: {step}");
        }
    }
}

fn read(step: &Value, quota: &Quota) -> Deed {
    let amount = step.get("amount").map(|_| number(step, "amount"));
    let other = amount.map(|amount| quota.with_amount(amount).expect("a valid amount"));
    Deed {
        op: match step["op"].as_str().expect("an op") {
            "decide" => Op::Decide,
            "peek" => Op::Peek,
            "record" => Op::Record,
            "refund" => Op::Refund(number(step, "charged_at")),
            other => panic!("no such op: {other}"),
        },
        quota: other.unwrap_or(*quota),
        at: number(step, "at"),
        cost: number(step, "cost"),
    }
}

/// All numbers are exact in a double, for the languages that have no others.
fn number(value: &Value, name: &str) -> u64 {
    let number = value[name].as_u64().expect("a whole number");
    assert!(number < 1 << 53, "{name}: {number}");
    number
}
