//! A fixed number of decisions and nothing else, for tools that count instructions.

use std::hint::black_box;
use std::time::Duration;

use tollgate::Algorithm::{self, SlidingBuckets, SlidingLog, TokenBucket};
use tollgate_bench::Order::Uniform;

use crate::ours::{One, Three};
use crate::theirs::{Governor, ThreeGovernors};
use crate::work::{Allowance, Key as _, User};

const KEYS: usize = 1_000;

/// Runs `--instructions <side> <work> <count>`. Both sides have the works `one`, `three`, `denied` and
/// `new`; ours also has `override`, `log`, `buckets` and `new-log`.
pub fn run(words: &[String]) -> Result<(), String> {
    let [side, work, count] = words else {
        return Err("usage: --instructions <ours|governor> <work> <count>".to_owned());
    };
    let count = count.parse().map_err(|error| format!("{count}: {error}"))?;
    match (side.as_str(), work.as_str()) {
        ("ours", "one") => ours(Allowance::USER, TokenBucket, count),
        ("ours", "denied") => ours(Allowance::EXHAUSTED, TokenBucket, count),
        ("ours", "log") => ours(Allowance::USER, SlidingLog, count),
        ("ours", "buckets") => ours(Allowance::USER, SlidingBuckets, count),
        ("ours", "new") => new_keys(TokenBucket, count),
        ("ours", "new-log") => new_keys(SlidingLog, count),
        ("ours", "override") => {
            let keys = String::all(KEYS);
            let one = One::new(&keys, Allowance::USER, TokenBucket);
            one.set_override("unrelated");
            settle(|| one.decide(&keys[0]));
            decisions(&Uniform.requests(&keys, count), &|key| one.decide(key));
        }
        ("ours", "three") => {
            let users = User::<String>::all(KEYS);
            let three = Three::new(&users, Allowance::THREE, TokenBucket);
            settle(|| three.decide(&users[0]));
            decisions(&Uniform.requests(&users, count), &|user| three.decide(user));
        }
        ("governor", "new") => {
            let governor = Governor::new(&Vec::<String>::new(), Allowance::USER);
            decisions(&String::all(count), &|key| governor.decide(key));
        }
        ("governor", "one") => governor(Allowance::USER, count),
        ("governor", "denied") => governor(Allowance::EXHAUSTED, count),
        ("governor", "three") => {
            let users = User::<String>::all(KEYS);
            let three = ThreeGovernors::new(&users, Allowance::THREE);
            decisions(&Uniform.requests(&users, count), &|user| three.decide(user));
        }
        _ => return Err(format!("{side} {work}: no such side, or no such work")),
    }
    Ok(())
}

fn ours(allowance: Allowance, algorithm: Algorithm, count: usize) {
    let keys = String::all(KEYS);
    let one = One::new(&keys, allowance, algorithm);
    settle(|| one.decide(&keys[0]));
    decisions(&Uniform.requests(&keys, count), &|key| one.decide(key));
}

/// Each key is decided once.
fn new_keys(algorithm: Algorithm, count: usize) {
    let one = One::new(&Vec::<String>::new(), Allowance::USER, algorithm);
    settle(|| one.decide(&"first".to_owned()));
    decisions(&String::all(count), &|key| one.decide(key));
}

fn governor(allowance: Allowance, count: usize) {
    let keys = String::all(KEYS);
    let one = Governor::new(&keys, allowance);
    decisions(&Uniform.requests(&keys, count), &|key| one.decide(key));
}

/// Lets the clock finish its calibration against the processor's counter before anything is counted.
fn settle(decide: impl Fn() -> bool) {
    for _ in 0..3 {
        black_box(decide());
        std::thread::sleep(Duration::from_millis(60));
    }
}

/// What is counted: the tool starts and stops by this name.
#[inline(never)]
fn decisions<T>(requests: &[T], decide: &dyn Fn(&T) -> bool) {
    for request in requests {
        black_box(decide(request));
    }
}
