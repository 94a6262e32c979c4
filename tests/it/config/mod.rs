//! Policy files.

mod everything;
mod hostile;
mod order;
mod schema;
mod secrets;
mod short_forms;
mod shown_error;
mod sources;
mod variables;
mod wrong;

use tollgate::config::{Config, ConfigError, Source};

/// Reads a TOML text, without the environment variables of the process.
fn toml(text: &str) -> Result<Config, ConfigError> {
    Source::toml(text).variables::<&str, &str>([]).read()
}

/// Returns each problem as one line.
fn problems(error: &ConfigError) -> Vec<String> {
    error.problems().map(ToString::to_string).collect()
}
