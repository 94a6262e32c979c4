//! Everything that is wrong with a file: [`ConfigError`].

use std::error::Error as StdError;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::problem::{ConfigProblem, ProblemReport};
use super::redact;
use super::render;
use super::tree::SpanOrigin;

/// Everything that is wrong with a policy file, at once.
///
/// Shown, it is what a good compiler says: each problem with its place in the file.
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
///   | ^^^^^^^^ expected `authenticated`, `anonymous`, `preflight` or `preflight_quota`
///   |
///   = help: did you mean `anonymous`?");
/// ```
///
/// Secrets are never shown: neither those that the file names, nor those that somebody has
/// written into it by mistake.
#[derive(Clone)]
pub struct ConfigError {
    inner: Arc<ConfigErrorInner>,
}

pub(super) struct ConfigErrorInner {
    /// What the file is called, as it was given.
    pub(super) name: String,
    /// What is in it, without secrets; nothing if it could not be read.
    pub(super) text: String,
    pub(super) problems: Vec<ConfigProblem>,
    pub(super) more: usize,
    /// The files with keys that it names, if it could be read so far.
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
        // As one reads: the file from top to bottom, then the environment. What is about the
        // whole comes last, for it mostly follows from the rest.
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

    /// One problem of the file as a whole.
    pub(super) fn whole(name: &str, problem: ConfigProblem) -> Self {
        let mut report = ProblemReport::default();
        report.push(problem);
        Self::new(name, "", report)
    }

    /// Each problem, from the top of the file to its end; at most one hundred.
    #[must_use]
    pub fn problems(&self) -> impl ExactSizeIterator<Item = &ConfigProblem> {
        self.inner.problems.iter()
    }

    /// How many problems there are beyond those.
    #[must_use]
    pub fn more(&self) -> usize {
        self.inner.more
    }

    /// The file's name, as it was given.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.inner.name
    }

    /// What [`Display`](fmt::Display) shows, in colours for a terminal.
    #[must_use]
    pub fn to_ansi(&self) -> String {
        render::render(&self.inner, true)
    }

    /// The problems as JSON, for programs: `{"file": …, "problems": [{"path": …, "line": …}, …],
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

/// The same as [`Display`](fmt::Display), because that is what `main` shows of an error it
/// returns.
impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StdError for ConfigError {}
