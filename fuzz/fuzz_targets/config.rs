//! Policy files, and the variables that override parts of them.
//!
//! An input is a file, read both as TOML and as JSON. After a NUL, which no file has, each line
//! is a variable: `TOLLGATE_GLOBAL__AUTHENTICATED=5/s`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate::config::{ConfigError, Source};
use tollgate::policy::Policy;

fuzz_target!(|input: &[u8]| {
    let Ok(input) = str::from_utf8(input) else {
        return;
    };
    let (text, variables) = input.split_once('\0').unwrap_or((input, ""));
    let variables: Vec<(&str, &str)> = variables
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();
    for source in [Source::toml(text), Source::json(text)] {
        // Keys are files and variables of the machine, which inputs must not choose.
        let source = source.variables(variables.iter().copied()).without_keys();
        match source.read() {
            Ok(config) => check_overview(config.into_policy()),
            Err(error) => check_messages(&error),
        }
    }
});

/// Every form of the report can be produced.
fn check_messages(error: &ConfigError) {
    assert!(error.problems().len() > 0);
    assert!(error.to_string().starts_with("error: "));
    assert!(!error.to_ansi().is_empty());
    assert!(error.to_json().starts_with('{'));
}

/// Overview and warnings of a valid file can be produced.
fn check_overview(policy: Policy) {
    let overview = policy.overview();
    assert!(!overview.tiers.is_empty());
    let _ = overview.warnings();
}
