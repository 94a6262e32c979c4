//! Test vectors in JSON: calls with their expected usages, for every store in every language. The
//! reference model of the crate's tests generates them.

use serde::Deserialize;

use super::harness::{Harness, batch, counter, user};
use crate::batch::Check;
use crate::key::Counter;
use crate::quota::Quota;
use crate::usage::Outcome;

const FILES: [&str; 5] = [
    include_str!("vectors/fixed-window.json"),
    include_str!("vectors/sliding-window.json"),
    include_str!("vectors/sliding-buckets.json"),
    include_str!("vectors/sliding-log.json"),
    include_str!("vectors/token-bucket.json"),
];

#[derive(Deserialize)]
struct File {
    algorithm: String,
    cases: Vec<Case>,
}

/// One counter and a sequence of calls.
#[derive(Deserialize)]
pub(super) struct Case {
    #[serde(skip)]
    algorithm: String,
    name: String,
    quota: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    op: Op,
    at: u64,
    cost: u64,
    /// For `refund`: the instant of the charge.
    charged_at: Option<u64>,
    /// Limit of this step, if it differs from the quota.
    amount: Option<u64>,
    /// Expected usage. Absent for `refund`.
    expect: Option<Expect>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Op {
    Decide,
    Peek,
    Record,
    Refund,
}

#[derive(Deserialize)]
struct Expect {
    outcome: Answered,
    limit: u64,
    used: u64,
    reset_at: u64,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answered {
    Allowed,
    Denied,
    Never,
}

/// All cases of all files.
pub(super) fn cases() -> Vec<Case> {
    let files = FILES.map(|text| {
        serde_json::from_str::<File>(text).expect("the vectors are valid JSON of this shape")
    });
    let named = |file: File| {
        let algorithm = file.algorithm;
        file.cases.into_iter().map(move |case| Case {
            algorithm: algorithm.clone(),
            ..case
        })
    };
    files.into_iter().flat_map(named).collect()
}

impl Case {
    pub(super) fn title(&self) -> String {
        format!("answers the {} vector `{}`", self.algorithm, self.name)
    }

    pub(super) async fn run(&self, harness: &Harness) {
        let (alice, counter) = (user("alice"), counter("vector", &self.quota));
        for (number, step) in self.steps.iter().enumerate() {
            let other = step.amount.map(|amount| with_amount(&counter, amount));
            let mut check = Check::new(&alice, &counter).with_cost(step.cost);
            if let Some(quota) = &other {
                check = check.with_quota(quota);
            }
            let checks = [check];
            let batch = batch(&checks);
            let usages = match step.op {
                Op::Decide => harness.decide(&batch, step.at).await,
                Op::Peek => harness.peek(&batch, step.at).await,
                Op::Record => harness.record(&batch, step.at).await,
                Op::Refund => {
                    let charged_at = step.charged_at.expect("a refund says when it was charged");
                    harness.refund(&batch, charged_at, step.at).await;
                    continue;
                }
            };
            let usage = usages.usages()[0];
            let wanted = step.expect.as_ref().expect("a step says what it expects");
            let outcome = match wanted.outcome {
                Answered::Allowed => Outcome::Allowed,
                Answered::Denied => Outcome::Denied,
                Answered::Never => Outcome::ExceedsCapacity,
            };
            harness.same(
                &format!("step {number}, {:?} {} at {}", step.op, step.cost, step.at),
                (
                    usage.outcome(),
                    usage.limit(),
                    usage.used(),
                    usage.reset_at().as_micros(),
                ),
                (outcome, wanted.limit, wanted.used, wanted.reset_at),
            );
        }
    }
}

fn with_amount(counter: &Counter, amount: u64) -> Quota {
    counter
        .quota()
        .with_amount(amount)
        .expect("the vectors' amounts fit")
}
