//! What is wrong with a file, one thing at a time.

use std::fmt;

use super::tree::{ConfigPath, Setting, SourceSpan, SpanOrigin, shortened};
use crate::error::ValidationError;

/// One thing that is wrong with a file: where, what was found, what was expected, and often how
/// to put it right.
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
    pub(super) help: Option<String>,
    pub(super) span: Option<SourceSpan>,
    /// Other places that have to do with it, and what is there.
    pub(super) also: Vec<(SourceSpan, String)>,
    /// The way to what was most likely meant, which is then no problem of its own.
    covers: Option<String>,
    /// Line and column, once the text is known that the place is in.
    pub(super) position: Option<(usize, usize)>,
}

/// The parts of a problem, by name.
#[derive(Default)]
pub(super) struct Told {
    pub(super) path: ConfigPath,
    pub(super) message: String,
    pub(super) found: Option<String>,
    pub(super) expected: Option<String>,
    pub(super) help: Option<String>,
    pub(super) span: Option<SourceSpan>,
    pub(super) also: Vec<(SourceSpan, String)>,
    pub(super) covers: Option<ConfigPath>,
}

impl ConfigProblem {
    pub(super) fn new(told: Told) -> Self {
        Self {
            path: told.path.as_str().to_owned(),
            message: told.message,
            found: told.found,
            expected: told.expected,
            help: told.help,
            span: told.span,
            also: told.also,
            covers: told.covers.map(|path| path.as_str().to_owned()),
            position: None,
        }
    }

    /// What a part of the model says about a value, at the place of the value. If what it
    /// refuses is only a part of a text, at that part.
    pub(super) fn refused(setting: &Setting<'_>, wrong: &ValidationError) -> Self {
        let mut span = setting.node.span.clone();
        if let Some(text) = setting.text() {
            narrow(&mut span, text, wrong.value());
        }
        let message = match wrong.value() {
            "" => format!("empty {}", wrong.field()),
            value => format!("invalid {} `{}`", wrong.field(), shortened(value)),
        };
        Self::new(Told {
            path: setting.path.clone(),
            message,
            found: Some(wrong.value().to_owned()),
            expected: Some(wrong.expected().to_owned()),
            span: Some(span),
            ..Told::default()
        })
    }

    pub(super) fn at(mut self, span: SourceSpan) -> Self {
        self.span = Some(span);
        self
    }

    pub(super) fn with_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }

    /// The way to the setting, such as `endpoints[3].limit`; the first in a list is number 0.
    /// Empty where it is about the file as a whole, or no key was found yet.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The value that was refused, if there was one that may be shown.
    #[must_use]
    pub fn found(&self) -> Option<&str> {
        self.found.as_deref()
    }

    /// What would have been accepted.
    #[must_use]
    pub fn expected(&self) -> Option<&str> {
        self.expected.as_deref()
    }

    /// How to put it right, where there is a guess: "did you mean …?"
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The line of the file, the first being 1. None if it is about a variable of the
    /// environment, or about the file as a whole.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.position.map(|(line, _)| line)
    }

    /// The column in the line, in characters, the first being 1.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.position.map(|(_, column)| column)
    }

    /// The variable of the environment that it is about, if it is not about the file.
    #[must_use]
    pub fn variable(&self) -> Option<&str> {
        match &self.span.as_ref()?.origin {
            SpanOrigin::Variable(variable) => Some(&variable.name),
            SpanOrigin::File => None,
        }
    }
}

/// Points at `part` alone, if it is certain where that is.
fn narrow(span: &mut SourceSpan, text: &str, part: &str) {
    let mut found = text.match_indices(part);
    let (Some((at, _)), None) = (found.next(), found.next()) else {
        return;
    };
    if part.is_empty() || part.len() == text.len() {
        return;
    }
    // In a file there are quotes around a text. With anything else that is not in the text
    // itself, such as escapes, it is longer still.
    let quote = usize::from(span.origin == SpanOrigin::File);
    if span.range.len() == text.len() + 2 * quote {
        let start = span.range.start + quote + at;
        span.range = start..start + part.len();
    }
}

/// All on one line: path, what is wrong, what was expected, what might help.
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

/// All problems of a file, while they are being found.
#[derive(Debug, Default)]
pub(super) struct ProblemReport {
    problems: Vec<ConfigProblem>,
    /// How many more there were.
    more: usize,
}

impl ProblemReport {
    /// More than anybody reads. What comes after is counted and not kept, so that a file of
    /// nothing but mistakes cannot fill the memory.
    pub(super) const MOST: usize = 100;

    pub(super) fn push(&mut self, problem: ConfigProblem) {
        self.add(|| problem);
    }

    /// A problem that is put into words only if it is kept.
    pub(super) fn add(&mut self, problem: impl FnOnce() -> ConfigProblem) {
        if self.is_full() {
            self.more += 1;
        } else {
            self.problems.push(problem());
        }
    }

    /// One that is not even looked at.
    pub(super) const fn skip(&mut self) {
        self.more += 1;
    }

    /// The value, or what was wrong with it noted.
    pub(super) fn note<T>(
        &mut self,
        setting: &Setting<'_>,
        result: Result<T, ValidationError>,
    ) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(wrong) => {
                self.push(ConfigProblem::refused(setting, &wrong));
                None
            }
        }
    }

    pub(super) const fn is_full(&self) -> bool {
        self.problems.len() >= Self::MOST
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// Whether something at this path, above it or below it was told before, from which this
    /// most likely follows.
    pub(super) fn has_told(&self, path: &str) -> bool {
        let within = |inner: &str, outer: &str| {
            let rest = inner.strip_prefix(outer);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let mut told = self.problems.iter().flat_map(|problem| {
            let covered = problem.covers.as_deref();
            std::iter::once(problem.path.as_str()).chain(covered)
        });
        told.any(|told| !told.is_empty() && (within(path, told) || within(told, path)))
    }

    pub(super) fn into_parts(self) -> (Vec<ConfigProblem>, usize) {
        (self.problems, self.more)
    }
}

impl Extend<ConfigProblem> for ProblemReport {
    fn extend<I: IntoIterator<Item = ConfigProblem>>(&mut self, problems: I) {
        for problem in problems {
            self.push(problem);
        }
    }
}
