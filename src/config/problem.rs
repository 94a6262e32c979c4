//! Problems of a policy file.

use std::fmt;

use serde::ser::{Serialize, Serializer};
use serde_json::json;

use super::tree::{ConfigPath, Setting, SourceSpan, SpanOrigin, shortened};
use crate::error::ValidationError;

/// One problem of a policy file: where it is, what was found, what was expected, and often how to
/// fix it.
///
/// ```
/// use tollgate::config::Source;
///
/// let text = "[global]\nauthenticated = '1000/fortnight'\n";
/// let error = Source::toml(text).variables::<&str, &str>([]).read().unwrap_err();
/// let problem = error.problems().next().unwrap();
/// assert_eq!(problem.path, "global.authenticated");
/// assert_eq!((problem.line(), problem.column()), (Some(2), Some(23)));
/// assert_eq!(problem.message, "invalid quota window `fortnight`");
/// assert!(problem.expected.as_ref().unwrap().starts_with("second, minute, hour"));
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigProblem {
    /// Path of the setting, such as `endpoints[3].limit`. Indexes start at 0. Empty if the problem is
    /// about the file as a whole, or if no key was found yet.
    pub path: String,
    /// Description of the problem.
    pub message: String,
    /// Rejected value, unless there is none or it may be a secret.
    pub found: Option<String>,
    /// Description of the values that are accepted.
    pub expected: Option<String>,
    /// Suggestion how to fix the problem: "did you mean …?"
    pub help: Option<String>,
    pub(super) span: Option<SourceSpan>,
    /// Another span of the file that the problem is about, and its label.
    pub(super) other: Option<(SourceSpan, &'static str)>,
    /// Path of the key that was probably meant. Problems there are not reported as well.
    pub(super) covers: Option<String>,
    /// Line and column, set once the text of the file is known.
    pub(super) position: Option<(usize, usize)>,
}

impl ConfigProblem {
    /// Creates a problem of the file as a whole.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
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
        let object = json!({
            "path": self.path,
            "variable": self.variable(),
            "line": self.line(),
            "column": self.column(),
            "message": self.message,
            "found": self.found,
            "expected": self.expected,
            "help": self.help,
        });
        object.serialize(to)
    }
}
