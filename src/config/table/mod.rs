//! The tables of a policy file. Each module holds the keys of one table and their reader.
//!
//! A [`TableSpec`] describes the keys. The [check](super::check) of a file, the environment
//! variables, the JSON Schema and the guide follow from it. The reader beside it turns the values
//! into settings of the builders. It skips values of the wrong kind, because the check has
//! reported them.

mod alerts;
mod defaults;
mod exempt;
mod file;
mod global;
mod identity;
mod ip;
mod jwt;
#[cfg(feature = "jwt")]
mod jwt_keys;
mod maintenance;
mod quota;
mod rule;
mod spec;
#[cfg(test)]
mod tests;
mod tiers;

pub(super) use self::file::{FILE, FileSettings, read};
pub(super) use self::quota::{QUOTA, is_quota_table};
pub(super) use self::rule::RULE;
use self::spec::keys;
pub(super) use self::spec::{KeySpec, TableSpec, ValueKind, quoted_list};

use std::time::Duration;

use super::context::ReadContext;
use super::report::ProblemReport;
use crate::error::ValidationError;
use crate::quota::{Algorithm, Window};

/// State while a file is read.
struct PolicyReader<'a> {
    report: &'a mut ProblemReport,
    context: &'a ReadContext,
    /// Algorithm of quotas that name none.
    algorithm: Algorithm,
}

/// Parses a length of time such as `30s` or `2 minutes`.
fn parse_duration(text: &str) -> Result<Duration, ValidationError> {
    if matches!(text.trim(), "0" | "0s") {
        return Ok(Duration::ZERO);
    }
    let window: Result<Window, ValidationError> = text.parse();
    window.map(Window::duration).map_err(|_| {
        ValidationError::new(
            "length of time",
            text,
            "a length of time such as `30s` or `2 minutes`",
        )
    })
}

/// Calls the setter of a builder if the file has a value for it.
fn set_if<B, T>(builder: B, value: Option<T>, set: impl FnOnce(B, T) -> B) -> B {
    match value {
        Some(value) => set(builder, value),
        None => builder,
    }
}
