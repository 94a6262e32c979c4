//! Problems of a policy file.

use std::fmt;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::tree::{ConfigPath, Setting, SourceSpan, SpanOrigin, shortened};
use crate::error::{ValidationError, ValidationErrors};

/// One problem of a policy file: where it is, what was found, what was expected, and often how to
/// fix it.
///
/// ```
/// use tollgate::config::Source;
///
/// let text = "[global]\nauthenticated = '1000/fortnight'\n";
/// let error = Source::toml(text).variables::<&str, &str>([]).read().unwrap_err();
/// let problem = error.problems().next().unwrap();
/// assert_eq!(problem.path(), "global.authenticated");
/// assert_eq!((problem.line(), problem.column()), (Some(2), Some(23)));
/// assert_eq!(problem.message(), "invalid quota window `fortnight`");
/// assert!(problem.expected().unwrap().starts_with("second, minute, hour"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    path: String,
    message: String,
    found: Option<String>,
    expected: Option<String>,
    help: Option<String>,
    pub(super) span: Option<SourceSpan>,
    /// Another place in the file that the problem is about, and its label.
    pub(super) other: Option<(SourceSpan, &'static str)>,
    /// Path of the key that was probably meant. Problems there are not reported as well.
    covers: Option<String>,
    /// Line and column, set once the text of the file is known.
    pub(super) position: Option<(usize, usize)>,
}

impl ConfigProblem {
    /// Creates a problem of the file as a whole.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            message: message.into(),
            found: None,
            expected: None,
            help: None,
            span: None,
            other: None,
            covers: None,
            position: None,
        }
    }

    /// Creates a problem of one setting.
    pub(super) fn at(setting: &Setting<'_>, message: impl Into<String>) -> Self {
        Self::new(message)
            .with_path(&setting.path)
            .with_span(setting.node.span.clone())
    }

    /// Creates a problem from the error of a builder or parser. If it rejects only a part of a text, the span is
    /// that part.
    pub(super) fn invalid(setting: &Setting<'_>, error: &ValidationError) -> Self {
        let mut span = setting.node.span.clone();
        if let Some(text) = setting.text() {
            narrow(&mut span, text, error.value());
        }
        // Without the name of the rule, because the span shows which one it is.
        let field = error.field();
        let field = field.rsplit_once(": ").map_or(field, |(_, field)| field);
        let message = match error.value() {
            "nothing" => format!("no {field}"),
            "" => format!("empty {field}"),
            _ if error.expected().starts_with("this on ") => format!("misplaced `{field}`"),
            value => format!("invalid {field} `{}`", shortened(value)),
        };
        Self::at(setting, message)
            .with_found(error.value())
            .with_expected(error.expected())
            .with_span(span)
    }

    pub(super) fn with_path(mut self, path: &ConfigPath) -> Self {
        path.as_str().clone_into(&mut self.path);
        self
    }

    pub(super) fn with_found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into());
        self
    }

    pub(super) fn with_expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    pub(super) fn with_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }

    pub(super) fn with_span(mut self, span: impl Into<Option<SourceSpan>>) -> Self {
        self.span = span.into();
        self
    }

    pub(super) fn with_other(mut self, span: SourceSpan, label: &'static str) -> Self {
        self.other = Some((span, label));
        self
    }

    /// Sets the path of the key that was probably meant.
    pub(super) fn covering(mut self, path: &ConfigPath) -> Self {
        self.covers = Some(path.as_str().to_owned());
        self
    }

    /// Returns the path of the setting, such as `endpoints[3].limit`. Indexes start at 0. Empty if the problem
    /// is about the file as a whole, or if no key was found yet.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the description of the problem.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the rejected value, unless there is none or it may be a secret.
    #[must_use]
    pub fn found(&self) -> Option<&str> {
        self.found.as_deref()
    }

    /// Returns a description of the values that are accepted.
    #[must_use]
    pub fn expected(&self) -> Option<&str> {
        self.expected.as_deref()
    }

    /// Returns a suggestion how to fix the problem, if there is one: "did you mean …?"
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Returns the line in the file, starting at 1. `None` if the problem is about an environment
    /// variable or the file as a whole.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.position.map(|(line, _)| line)
    }

    /// Returns the column in the line, in characters, starting at 1.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.position.map(|(_, column)| column)
    }

    /// Returns the environment variable that the problem is about, if it is not about the file.
    #[must_use]
    pub fn variable(&self) -> Option<&str> {
        match &self.span.as_ref()?.origin {
            SpanOrigin::Variable(variable) => Some(&variable.name),
            SpanOrigin::File => None,
        }
    }
}

/// Narrows a span to `part` of its text, if the position of the part is unambiguous.
fn narrow(span: &mut SourceSpan, text: &str, part: &str) {
    let mut found = text.match_indices(part);
    let (Some((at, _)), None) = (found.next(), found.next()) else {
        return;
    };
    if part.is_empty() || part.len() == text.len() {
        return;
    }
    // In a file a text has quotes around it. If the span is longer still, the text has escapes,
    // and positions in it are unknown.
    let quote = usize::from(span.origin == SpanOrigin::File);
    if span.range.len() == text.len() + 2 * quote {
        let start = span.range.start + quote + at;
        span.range = start..start + part.len();
    }
}

/// Writes one line: path, message, what is expected, help.
impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(variable) = self.variable() {
            write!(f, "{variable}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if let Some(expected) = &self.expected {
            write!(f, "; expected {expected}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConfigProblem({self})")
    }
}

/// Serializes the problem as in [`ConfigError::to_json`](super::ConfigError::to_json).
impl Serialize for ConfigProblem {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_struct("ConfigProblem", 8)?;
        fields.serialize_field("path", self.path())?;
        fields.serialize_field("variable", &self.variable())?;
        fields.serialize_field("line", &self.line())?;
        fields.serialize_field("column", &self.column())?;
        fields.serialize_field("message", self.message())?;
        fields.serialize_field("found", &self.found())?;
        fields.serialize_field("expected", &self.expected())?;
        fields.serialize_field("help", &self.help())?;
        fields.end()
    }
}

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
            if problem.path().is_empty() || !self.has_reported(problem.path()) {
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
