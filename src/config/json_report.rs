//! Problems for programs.

use serde_json::{Value, json};

use super::error::ConfigErrorInner;
use super::problem::ConfigProblem;

pub(super) fn report(error: &ConfigErrorInner) -> String {
    let problems: Vec<Value> = error.problems.iter().map(problem).collect();
    let report = json!({
        "file": error.name,
        "problems": problems,
        "more": error.more,
    });
    report.to_string()
}

fn problem(problem: &ConfigProblem) -> Value {
    json!({
        "path": problem.path(),
        "variable": problem.variable(),
        "line": problem.line(),
        "column": problem.column(),
        "message": problem.message(),
        "found": problem.found(),
        "expected": problem.expected(),
        "help": problem.help(),
    })
}
