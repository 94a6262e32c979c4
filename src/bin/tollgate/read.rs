//! The file.

use std::path::Path;

use serde_json::{Value, json};
use tollgate::config::{Config, ConfigError, Source};

use crate::args::Format;
use crate::output::{Failure, Output, complain, say_json};

/// Reads a file, or tells all that is wrong with it. Secrets are not looked for: files are
/// checked where they are not.
pub(crate) fn read(path: &Path, output: Output) -> Result<Config, Failure> {
    Source::file(path).without_keys().read().map_err(|error| {
        match output.format {
            Format::Json => say_json(&problems(&error)),
            Format::Text => complain(&told(&error, output.colors_stderr())),
        }
        Failure::Problems
    })
}

fn told(error: &ConfigError, colors: bool) -> String {
    let count = error.problems().len() + error.more();
    let problems = if colors {
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

fn problems(error: &ConfigError) -> Value {
    let mut report: Value = serde_json::from_str(&error.to_json()).unwrap_or_default();
    report["ok"] = json!(false);
    report
}
