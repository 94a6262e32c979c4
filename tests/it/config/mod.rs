//! Policies from files.

mod everything;
mod hostile;
mod order;
mod schema;
mod secrets;
mod shown_error;
mod sources;
mod variables;
mod wrong;

use tollgate::config::{Config, ConfigError, Source};

/// What a text in TOML says, whatever the environment of the tests.
fn toml(text: &str) -> Result<Config, ConfigError> {
    Source::toml(text).variables::<&str, &str>([]).read()
}

/// Each problem of a text, on one line.
fn problems(error: &ConfigError) -> Vec<String> {
    error.problems().map(ToString::to_string).collect()
}
