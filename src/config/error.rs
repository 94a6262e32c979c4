//! Error with all problems of a policy file.

use std::error::Error as StdError;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::problem::ConfigProblem;
use super::redact;
use super::render;
use super::report::ProblemReport;
use super::tree::SpanOrigin;

/// All problems of a policy file.
///
/// `Display` shows each problem with its line of the file, as compilers do.
///
/// ```
/// use tollgate::config::Source;
///
/// let text = "\
/// [global]
/// authenticated = \"1000/hour\"
/// anonymus = \"100/hour\"
/// ";
/// let error = Source::toml(text).variables::<&str, &str>([]).read().unwrap_err();
/// assert_eq!(error.to_string(), "\
/// error: global.anonymus: unknown key `anonymus`
///  --> policy.toml:3:1
///   |
/// 3 | anonymus = \"100/hour\"
///   | ^^^^^^^^ expected `authenticated`, `anonymous`, `everyone`, `preflight` or `preflight_quota`
///   |
///   = help: did you mean `anonymous`?");
/// ```
///
/// Secrets that the file names are never shown. Values of keys that look like secrets, such as
/// `secret` or `password`, are masked.
#[derive(Clone)]
pub struct ConfigError {
    inner: Arc<ConfigErrorInner>,
}

pub(super) struct ConfigErrorInner {
    /// Name of the file, as it was given.
    pub(super) name: String,
    /// Text of the file with secrets masked. Empty if it could not be read.
    pub(super) text: String,
    pub(super) problems: Vec<ConfigProblem>,
    pub(super) more: usize,
    /// Key files that the file names. `None` if the file could not be parsed.
    key_files: Option<Vec<PathBuf>>,
}

impl ConfigError {
    pub(super) fn new(name: &str, text: &str, report: ProblemReport) -> Self {
        let (mut problems, more) = report.into_parts();
        let lines = render::Lines::of(text);
        for problem in &mut problems {
            problem.position = match &problem.span {
                Some(span) if span.origin == SpanOrigin::File => {
                    Some(lines.position(text, span.range.start))
                }
                _ => None,
            };
        }
        // The file from top to bottom, then the environment. Problems of the whole file come last,
        // because they are mostly consequences of the others.
        problems.sort_by_key(|problem| {
            let nowhere = problem.span.is_none();
            (nowhere, problem.position.is_none(), problem.position)
        });
        Self {
            inner: Arc::new(ConfigErrorInner {
                name: name.to_owned(),
                text: redact::redact(text),
                problems,
                more,
                key_files: None,
            }),
        }
    }

    pub(super) fn with_key_files(mut self, files: Vec<PathBuf>) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.key_files = Some(files);
        }
        self
    }

    pub(super) fn key_files(&self) -> Option<&[PathBuf]> {
        self.inner.key_files.as_deref()
    }

    /// Creates an error with one problem of the file as a whole.
    pub(super) fn whole(name: &str, problem: ConfigProblem) -> Self {
        let mut report = ProblemReport::default();
        report.push(problem);
        Self::new(name, "", report)
    }

    /// Returns the problems, from the top of the file to its end; at most 100.
    #[must_use]
    pub fn problems(&self) -> impl ExactSizeIterator<Item = &ConfigProblem> {
        self.inner.problems.iter()
    }

    /// Returns the number of further problems, which [`problems`](Self::problems) leaves out.
    #[must_use]
    pub fn more(&self) -> usize {
        self.inner.more
    }

    /// Returns the name of the file, as it was given.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.inner.name
    }

    /// Returns the text of [`Display`](fmt::Display) with colours for a terminal.
    #[must_use]
    pub fn to_ansi(&self) -> String {
        render::render(&self.inner, true)
    }

    /// Returns the problems as JSON: `{"file": …, "problems": [{"path": …, "line": …}, …],
    /// "more": 0}`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let report = serde_json::json!({
            "file": self.inner.name,
            "problems": self.inner.problems,
            "more": self.inner.more,
        });
        report.to_string()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render::render(&self.inner, false))
    }
}

/// Equal to [`Display`](fmt::Display), because `main` prints the `Debug` text of an error that it
/// returns.
impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StdError for ConfigError {}
