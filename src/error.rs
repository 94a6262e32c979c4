//! Errors of the crate.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// Invalid setting: the field, its value, and what is allowed.
///
/// Constructors and builders return it, so that a wrong setting is found before the first request.
///
/// ```
/// use tollgate::Quota;
///
/// let refused = Quota::per_hour(0).unwrap_err();
/// assert_eq!(refused.field(), "quota limit");
/// assert_eq!(refused.value(), "0");
/// assert!(refused.to_string().contains("blocked"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationError {
    field: Cow<'static, str>,
    value: String,
    expected: Cow<'static, str>,
    path: Option<Box<str>>,
    other: Option<Box<str>>,
}

impl ValidationError {
    /// Creates an error about `field`, whose value is `value` and should be `expected`.
    ///
    /// Public, so that custom stores and identity sources can reject their settings with it.
    pub fn new(
        field: impl Into<Cow<'static, str>>,
        value: impl fmt::Display,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            field: field.into(),
            value: value.to_string(),
            expected: expected.into(),
            path: None,
            other: None,
        }
    }

    /// Prefixes the field with the item that it belongs to: `login: quota limit`.
    #[must_use]
    pub(crate) fn within(mut self, place: &str) -> Self {
        self.field = format!("{place}: {}", self.field).into();
        self
    }

    /// Sets the path within a policy, `endpoints[3].limit`, unless one is set.
    #[must_use]
    pub(crate) fn at(mut self, path: impl Into<Box<str>>) -> Self {
        self.path.get_or_insert_with(|| path.into());
        self
    }

    /// Returns the path within a policy file: `endpoints[3].limit`. `None` for settings outside of a
    /// policy.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// Sets the path of the setting that this one contradicts.
    #[must_use]
    pub(crate) fn because_of(mut self, other: impl Into<Box<str>>) -> Self {
        self.other = Some(other.into());
        self
    }

    /// Returns the path of the setting that this one contradicts, for example the other of two equal
    /// routes.
    #[must_use]
    pub fn other_path(&self) -> Option<&str> {
        self.other.as_deref()
    }

    /// Returns the name of the setting: `quota limit`, `store capacity`, …
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns the rejected value as text.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns what is allowed.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.expected
    }
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "invalid {}: found `{}`, expected {}",
            self.field, self.value, self.expected
        )
    }
}

impl StdError for ValidationError {}

/// All errors of a policy or a layer, reported together.
///
/// ```
/// use tollgate::policy::{Policy, Rule};
///
/// let problems = Policy::builder()
///     .anonymous("0/hour")
///     .endpoint("GET v1/items", "10/minute")
///     .build()
///     .unwrap_err();
/// assert_eq!(problems.iter().count(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationErrors(Vec<ValidationError>);

impl ValidationErrors {
    /// Returns the errors in the order of the settings.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ValidationError> {
        self.0.iter()
    }

    /// Adds an error unless one of the last 32 is equal. Comparing with all would be quadratic: a
    /// policy can have a hundred thousand errors.
    pub(crate) fn push(&mut self, problem: ValidationError) {
        const COMPARED: usize = 32;
        if !self
            .0
            .iter()
            .rev()
            .take(COMPARED)
            .any(|known| *known == problem)
        {
            self.0.push(problem);
        }
    }

    /// Returns the value, or adds the error.
    pub(crate) fn note<T>(&mut self, result: Result<T, ValidationError>) -> Option<T> {
        result.map_err(|problem| self.push(problem)).ok()
    }

    /// The value, or its errors added.
    pub(crate) fn note_all<T>(&mut self, result: Result<T, Self>) -> Option<T> {
        result
            .map_err(|errors| errors.0.into_iter().for_each(|error| self.push(error)))
            .ok()
    }

    /// Returns `value` if there are no errors.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

impl From<ValidationError> for ValidationErrors {
    fn from(problem: ValidationError) -> Self {
        Self(vec![problem])
    }
}

impl fmt::Display for ValidationErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl StdError for ValidationErrors {}

/// Failure of a store. The memory store never returns it.
///
/// A failure is not a denial: it carries no information about the caller.
///
/// ```
/// use tollgate::{StoreError, StoreErrorKind};
///
/// let down = StoreError::new("no route to the server");
/// assert_eq!(down.kind(), StoreErrorKind::Unavailable);
///
/// let wrong = StoreError::permanent("wrong password; check it in the URL");
/// assert_eq!(wrong.kind(), StoreErrorKind::Permanent);
/// ```
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    /// Shared, because one failure is returned to many requests.
    message: Arc<str>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// Kind of a store failure: temporary or permanent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Outage: the store cannot be reached, or does not reply in time. The failure mode of each rule
    /// applies.
    #[default]
    Unavailable,
    /// Permanent error: wrong credentials, a command without permission, a rejected script, a key of
    /// another type. It lasts until the configuration is corrected. Rules that pass requests
    /// uncounted during an outage count them in the memory of each process instead.
    Permanent,
    /// The store has no memory, disk or queue left, for example a Redis server that reached its
    /// `maxmemory`. Callers can cause it by sending requests under many identities. Rules that pass
    /// requests in an outage therefore count them in the memory of each process, as for
    /// [`Permanent`](Self::Permanent).
    Exhausted,
}

impl StoreErrorKind {
    /// Returns the name in events and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Permanent => "refused",
            Self::Exhausted => "exhausted",
        }
    }
}

impl StoreError {
    /// Creates an outage with a message.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self::of_kind(StoreErrorKind::Unavailable, message)
    }

    /// Creates a permanent error. The message should contain what to correct.
    pub fn permanent(message: impl Into<Cow<'static, str>>) -> Self {
        Self::of_kind(StoreErrorKind::Permanent, message)
    }

    /// Creates a failure of this kind.
    pub fn of_kind(kind: StoreErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            message: message.into().into(),
            source: None,
        }
    }

    /// Sets the underlying error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the kind of the failure.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Copies the failure without its source, which cannot be cloned.
    pub(crate) fn again(&self) -> Self {
        Self {
            kind: self.kind,
            message: Arc::clone(&self.message),
            source: None,
        }
    }

    /// Returns the message.
    pub(crate) fn message(&self) -> &Arc<str> {
        &self.message
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

/// Failed replacement of a policy. The previous policy stays in use.
///
/// The message contains all errors of the file that were found.
#[derive(Clone, Debug)]
pub struct ReloadError {
    message: Arc<str>,
}

impl ReloadError {
    pub(crate) fn new(message: impl Into<Arc<str>>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for ReloadError {}

impl From<ValidationErrors> for ReloadError {
    fn from(problems: ValidationErrors) -> Self {
        Self::new(problems.to_string())
    }
}

/// Error of a builder, or of a [`Limiter`](crate::Limiter) call that returns no decision.
///
/// A denial is never an error: it is a [`Decision`](crate::Decision).
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A setting or an argument is invalid, for example a per-call limit of 0.
    Invalid(ValidationError),
    /// Several settings are invalid.
    Problems(ValidationErrors),
    /// The store failed.
    Store(StoreError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(invalid) => invalid.fmt(f),
            Self::Problems(problems) => problems.fmt(f),
            Self::Store(error) => write!(f, "the rate limit store failed: {error}"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Invalid(_) | Self::Problems(_) => None,
            Self::Store(error) => Some(error),
        }
    }
}

impl From<ValidationError> for Error {
    fn from(invalid: ValidationError) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<ValidationErrors> for Error {
    fn from(problems: ValidationErrors) -> Self {
        Self::Problems(problems)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
