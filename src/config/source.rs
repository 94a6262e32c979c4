//! Source of a policy: a file or a text.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::ConfigError;
use super::problem::ConfigProblem;
use super::read_file::{FileError, MAX_LENGTH, read_regular_file};
use super::report::ProblemReport;
use super::syntax::Syntax;
use super::tree::SourceSpan;
use super::{Config, context::ReadContext};
use crate::policy::PolicyBuilder;

/// Source of a policy: a file or a text, and the environment variables that override parts of it.
///
/// ```
/// use tollgate::config::Source;
///
/// let text = r#"
///     [global]
///     authenticated = "1000/hour"
/// "#;
/// let config = Source::toml(text)
///     .variables([("TOLLGATE_GLOBAL__AUTHENTICATED", "2000/hour")])
///     .adjust(|policy| policy.exempt_when(|head| head.path().starts_with("/internal/")))
///     .read()?;
/// # let _ = config;
/// # Ok::<(), tollgate::config::ConfigError>(())
/// ```
///
/// A source can be read any number of times. A file is read from disk each time.
#[derive(Clone)]
#[must_use]
pub struct Source {
    from: From,
    pub(super) syntax: Syntax,
    pub(super) context: ReadContext,
    adjust: Option<Arc<Adjust>>,
}

type Adjust = dyn Fn(PolicyBuilder) -> PolicyBuilder + Send + Sync;

#[derive(Clone)]
enum From {
    File(PathBuf),
    Text(Arc<str>),
}

impl Source {
    /// Creates a source that reads a file: JSON if its name ends in `.json`, else TOML.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let is_json = path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        let syntax = if is_json { Syntax::Json } else { Syntax::Toml };
        let base = path.parent().map(Path::to_owned).unwrap_or_default();
        Self::new(From::File(path), syntax, base)
    }

    /// Creates a source from a TOML text.
    pub fn toml(text: impl Into<String>) -> Self {
        let text = text.into().into();
        Self::new(From::Text(text), Syntax::Toml, PathBuf::new())
    }

    /// Creates a source from a JSON text.
    pub fn json(text: impl Into<String>) -> Self {
        let text = text.into().into();
        Self::new(From::Text(text), Syntax::Json, PathBuf::new())
    }

    fn new(from: From, syntax: Syntax, base: PathBuf) -> Self {
        Self {
            from,
            syntax,
            context: ReadContext::new(base),
            adjust: None,
        }
    }

    /// Sets the environment variables. Default: those of the process. Mostly for tests.
    pub fn variables<K, V>(mut self, variables: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let variables = variables
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        self.context.variables = Some(variables.collect());
        self
    }

    /// Sets a closure that changes the policy each time the source is read. Use it for settings that
    /// a file cannot have, such as [`exempt_when`](PolicyBuilder::exempt_when).
    pub fn adjust(
        mut self,
        adjust: impl Fn(PolicyBuilder) -> PolicyBuilder + Send + Sync + 'static,
    ) -> Self {
        self.adjust = Some(Arc::new(adjust));
        self
    }

    /// Does not read the secrets and keys that the file names. Use it to check a file on a machine
    /// that does not have them. A layer from this source rejects every token.
    pub fn without_keys(mut self) -> Self {
        self.context.with_keys = false;
        self
    }

    /// Returns the path of the file. `None` if the source is a text.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.from {
            From::File(path) => Some(path),
            From::Text(_) => None,
        }
    }

    /// Reads and checks the policy.
    ///
    /// # Errors
    ///
    /// Returns all problems of the policy together, or why the file cannot be read.
    pub fn read(&self) -> Result<Config, ConfigError> {
        let name = self.name();
        let text = match &self.from {
            From::Text(text) if text.len() as u64 > MAX_LENGTH => {
                return Err(ConfigError::whole(&name, too_long()));
            }
            From::Text(text) => text.to_string(),
            From::File(path) => read_text(path, &name)?,
        };
        // Some editors write a byte order mark at the start.
        let plain = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut config = Config::of_text(self, &name, plain)?;
        config.fingerprint = fingerprint_of(text.as_bytes());
        Ok(config)
    }

    /// Returns the name in messages.
    pub(super) fn name(&self) -> String {
        match (&self.from, self.syntax) {
            (From::File(path), _) => path.display().to_string(),
            (From::Text(_), Syntax::Toml) => "policy.toml".to_owned(),
            (From::Text(_), Syntax::Json) => "policy.json".to_owned(),
        }
    }

    pub(super) fn adjusted(&self, policy: PolicyBuilder) -> PolicyBuilder {
        match &self.adjust {
            Some(adjust) => adjust(policy),
            None => policy,
        }
    }
}

/// Shows the file, but no values of variables, because they may be secrets.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("name", &self.name())
            .field("syntax", &self.syntax)
            .finish_non_exhaustive()
    }
}

/// Returns a hash of the contents of a file, to detect changes.
pub(super) fn fingerprint_of(bytes: &[u8]) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(bytes)
}

/// Reads a file as UTF-8 text.
fn read_text(path: &Path, name: &str) -> Result<String, ConfigError> {
    let bytes = read_regular_file(path)
        .map_err(|error| ConfigError::whole(name, unreadable(path, &error)))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let is_utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
        let help = if is_utf16 {
            "this looks like UTF-16: save the file as UTF-8"
        } else {
            "save the file as UTF-8"
        };
        let message = format!("the byte 0x{:02x} is no part of a character", bytes[at]);
        let problem = ConfigProblem::new(message)
            .with_expected("text in UTF-8")
            .with_help(Some(help.to_owned()))
            .with_span(SourceSpan::in_file(at..at));
        let mut report = ProblemReport::default();
        report.push(problem);
        // Up to there, the lossy text has the same positions.
        ConfigError::new(name, &String::from_utf8_lossy(bytes), report)
    })
}

fn unreadable(path: &Path, error: &FileError) -> ConfigProblem {
    if error.is_too_long() {
        return too_long();
    }
    let similar = error.is_missing().then(|| similar_file(path)).flatten();
    ConfigProblem::new(error.to_string())
        .with_expected("a policy file")
        .with_help(similar.or_else(|| error.help()))
}

/// Suggests a file of the same directory with a similar name.
fn similar_file(path: &Path) -> Option<String> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let written = path.file_name()?.to_str()?;
    let Ok(entries) = directory.read_dir() else {
        return Some(format!("directory `{}` not found", directory.display()));
    };
    let names: Vec<OsString> = entries
        .flatten()
        .map(|entry| entry.file_name())
        .take(1_000)
        .collect();
    let mut names: Vec<&str> = names
        .iter()
        .map(OsString::as_os_str)
        .filter_map(OsStr::to_str)
        .collect();
    names.sort_unstable();
    super::suggest::did_you_mean(written, names)
}

fn too_long() -> ConfigProblem {
    ConfigProblem::new(format!("more than {} MiB", MAX_LENGTH >> 20))
        .with_expected("a policy file, which is smaller than that")
}
