//! Reading of a policy file, and the report of its problems.

use std::path::Path;

use serde_json::{Value, json};
use tollgate::config::{Config, ConfigError, Source};

use crate::args::Format;
use crate::output::{Failure, Output, write_json, write_stderr};

/// Reads a policy file, or prints all of its problems.
///
/// Secrets and keys that the file names are not loaded: CI does not have them.
pub(crate) fn read(path: &Path, output: Output) -> Result<Config, Failure> {
    Source::file(path).without_keys().read().map_err(|error| {
        match output.format {
            Format::Json => write_json(&json_report(&error)),
            Format::Text => write_stderr(&text_report(&error, output.has_colored_stderr())),
        }
        Failure::Problems
    })
}

fn text_report(error: &ConfigError, has_colors: bool) -> String {
    let count = error.problems().len() + error.more();
    let problems = if has_colors {
        error.to_ansi()
    } else {
        error.to_string()
    };
    let plural = if count == 1 { "" } else { "s" };
    format!(
        "{problems}\n\n{count} problem{plural} in {}\n",
        error.file()
    )
}

fn json_report(error: &ConfigError) -> Value {
    let mut report: Value = serde_json::from_str(&error.to_json()).unwrap_or_default();
    report["ok"] = json!(false);
    report
}
