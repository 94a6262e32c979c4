//! Collects the problems of a policy file while it is read.

use super::problem::ConfigProblem;
use super::tree::{Setting, SourceSpan};
use crate::error::{ValidationError, ValidationErrors};

/// Problems of a file, while it is read.
#[derive(Debug, Default)]
pub(super) struct ProblemReport {
    problems: Vec<ConfigProblem>,
    /// Number of problems that were not kept.
    more: usize,
}

impl ProblemReport {
    /// Problems beyond this number are counted, but not kept, so that a file of mistakes cannot
    /// fill the memory.
    pub(super) const MOST: usize = 100;

    pub(super) fn push(&mut self, problem: ConfigProblem) {
        self.push_with(|| problem);
    }

    /// Adds a problem that is built only if it is kept.
    pub(super) fn push_with(&mut self, problem: impl FnOnce() -> ConfigProblem) {
        if self.is_full() {
            self.more += 1;
        } else {
            self.problems.push(problem());
        }
    }

    /// Returns the value, or adds the error of a setting.
    pub(super) fn check<T>(
        &mut self,
        setting: &Setting<'_>,
        result: Result<T, ValidationError>,
    ) -> Option<T> {
        result
            .map_err(|error| self.push(ConfigProblem::invalid(setting, &error)))
            .ok()
    }

    /// Returns the value, or adds the errors of a builder whose settings are in `table`.
    pub(super) fn check_all<T>(
        &mut self,
        table: &Setting<'_>,
        result: Result<T, ValidationErrors>,
    ) -> Option<T> {
        self.check_all_with(table, result, |_, _| None)
    }

    /// Returns the value, or adds the errors of a builder whose settings are in `table`, with
    /// help. The path of each error leads from `table` to the setting.
    ///
    /// Settings that were reported before are skipped: their errors are consequences.
    pub(super) fn check_all_with<T>(
        &mut self,
        table: &Setting<'_>,
        result: Result<T, ValidationErrors>,
        help: impl Fn(&ValidationError, &Setting<'_>) -> Option<String>,
    ) -> Option<T> {
        let errors = match result {
            Ok(value) => return Some(value),
            Err(errors) => errors,
        };
        let mut new = Vec::new();
        for error in errors.iter() {
            if new.len() > Self::MOST {
                self.more += 1;
                continue;
            }
            let problem = locate(error, table).with_help(help(error, table));
            if problem.path.is_empty() || !self.has_reported(&problem.path) {
                new.push(problem);
            }
        }
        self.extend(new);
        None
    }

    pub(super) const fn is_full(&self) -> bool {
        self.problems.len() >= Self::MOST
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns whether a problem at this path, above it or below it was reported.
    fn has_reported(&self, path: &str) -> bool {
        let within = |inner: &str, outer: &str| {
            let rest = inner.strip_prefix(outer);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let mut reported = self.problems.iter().flat_map(|problem| {
            let covered = problem.covers.as_deref();
            std::iter::once(problem.path.as_str()).chain(covered)
        });
        reported.any(|other| !other.is_empty() && (within(path, other) || within(other, path)))
    }

    pub(super) fn into_parts(self) -> (Vec<ConfigProblem>, usize) {
        (self.problems, self.more)
    }
}

/// Maps the path of an error to its span in the file.
fn locate(error: &ValidationError, table: &Setting<'_>) -> ConfigProblem {
    let (setting, rest) = table.clone().follow(error.path().unwrap_or_default());
    let mut problem = ConfigProblem::invalid(&setting, error);
    if setting.table().is_some() {
        problem = problem
            .with_path(&setting.path.then(rest))
            // The root is the whole file, which has no line.
            .with_span((!setting.path.as_str().is_empty()).then(|| heading_span(&setting)));
    }
    match error.other_path() {
        Some(other) => {
            let (setting, _) = table.clone().follow(other);
            problem.with_other(heading_span(&setting), "the other one")
        }
        None => problem,
    }
}

/// Returns the span of a table's name or route, which identify a table in a list, else of the
/// setting itself.
fn heading_span(setting: &Setting<'_>) -> SourceSpan {
    let heading = ["name", "route"]
        .into_iter()
        .find_map(|key| setting.get(key));
    let heading = heading.filter(|heading| heading.text().is_some());
    heading.as_ref().unwrap_or(setting).node.span.clone()
}

impl Extend<ConfigProblem> for ProblemReport {
    fn extend<I: IntoIterator<Item = ConfigProblem>>(&mut self, problems: I) {
        for problem in problems {
            self.push(problem);
        }
    }
}
