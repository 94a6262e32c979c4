//! Policy files, and the variables that override parts of them.
//!
//! An input is a file, read both as TOML and as JSON. After a NUL, which no file has, each line
//! is a variable: `TOLLGATE_GLOBAL__AUTHENTICATED=5/s`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate::config::{Config, ConfigError, Source};

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
            Ok(config) => can_be_printed(&config),
            Err(error) => can_be_shown(&error),
        }
    }
});

/// What is wrong is told in every form there is, and not at any length.
fn can_be_shown(error: &ConfigError) {
    assert!(error.problems().len() > 0);
    assert!(error.to_string().starts_with("error: "));
    assert!(!error.to_ansi().is_empty());
    assert!(error.to_json().starts_with('{'));
}

/// What is right is printed such that it can be read, and is printed the same then.
fn can_be_printed(config: &Config) {
    let printed = config.to_toml().expect("a file said it");
    // Not shown, and so not to be read; or a little longer than the file, and so too long.
    if printed.contains("# secret_env") || printed.len() > 8 << 20 {
        return;
    }
    let again = Source::toml(&*printed)
        .variables::<&str, &str>([])
        .without_keys();
    let again = again
        .read()
        .unwrap_or_else(|error| panic!("{error}\n\n{printed}"));
    let twice = again.to_toml().expect("a file said it");
    assert_eq!(twice, printed);
}
