//! The errors of the crate: what was wrong, where, what was expected.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// A setting that cannot be used: which one, what it was, and what is allowed.
///
/// Every constructor in this crate that can refuse its input refuses it with this type, when
/// the thing is built and not when the first request arrives.
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
    /// An error about `field`, which was `value` where `expected` was needed.
    ///
    /// Public, so that custom stores and key builders can refuse their settings the same way.
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

    /// The same problem, with the place where it is: `login: quota limit`.
    #[must_use]
    pub(crate) fn within(mut self, place: &str) -> Self {
        self.field = format!("{place}: {}", self.field).into();
        self
    }

    /// The same problem, with its place in a policy: `endpoints[3].limit`. The innermost wins.
    #[must_use]
    pub(crate) fn at(mut self, path: impl Into<Box<str>>) -> Self {
        self.path.get_or_insert_with(|| path.into());
        self
    }

    /// Where in a policy it is, in the words of a policy file: `endpoints[3].limit`. `None` if
    /// it is no part of a policy.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// The same problem, with the place of what it contradicts.
    #[must_use]
    pub(crate) fn because_of(mut self, other: impl Into<Box<str>>) -> Self {
        self.other = Some(other.into());
        self
    }

    /// Where that is which it contradicts, if there is something: the other of two routes that
    /// are the same.
    #[must_use]
    pub fn other_path(&self) -> Option<&str> {
        self.other.as_deref()
    }

    /// What was set: `quota limit`, `store capacity`, …
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The value that was refused, as text.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What would have been accepted.
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

/// Everything that is wrong with a policy or a layer, at once.
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
    /// Each problem, in the order of the settings.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ValidationError> {
        self.0.iter()
    }

    /// Adds a problem, unless it was told just before. Not all of them are compared: a policy
    /// of nothing but mistakes may have a hundred thousand.
    pub(crate) fn push(&mut self, problem: ValidationError) {
        const COMPARED: usize = 32;
        if !self
            .0
            .iter()
            .rev()
            .take(COMPARED)
            .any(|told| *told == problem)
        {
            self.0.push(problem);
        }
    }

    /// The value, or the problem noted.
    pub(crate) fn note<T>(&mut self, result: Result<T, ValidationError>) -> Option<T> {
        result.map_err(|problem| self.push(problem)).ok()
    }

    /// The value, or its errors added.
    pub(crate) fn note_all<T>(&mut self, result: Result<T, Self>) -> Option<T> {
        result
            .map_err(|errors| errors.0.into_iter().for_each(|error| self.push(error)))
            .ok()
    }

    /// `value`, if there was no problem.
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

/// A store could not answer. The memory store never returns this.
///
/// It says nothing about the caller: a failed store is not a denial, and must not be turned
/// into one.
///
/// ```
/// use tollgate::{StoreError, StoreErrorKind};
///
/// let down = StoreError::new("no route to the server");
/// assert_eq!(down.kind(), StoreErrorKind::Unavailable);
///
/// let wrong = StoreError::refused("wrong password; check it in the URL");
/// assert_eq!(wrong.kind(), StoreErrorKind::Refused);
/// ```
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    /// Shared, because an outage is told to many.
    message: Arc<str>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// Whether it helps to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// It could not be reached, did not answer in time, or has no room: an outage. It ends by
    /// itself or with the machine's, and until then each rule has said what becomes of its
    /// requests.
    #[default]
    Unavailable,
    /// It is there and will not do it: wrong credentials, a command that the user may not use, a
    /// script that it does not take, a key of another type. That is a mistake, and stays until
    /// somebody mends it. So nothing goes on uncounted meanwhile: rules that let requests
    /// through in an outage count them in the memory of each process instead.
    Refused,
}

impl StoreErrorKind {
    /// As events and figures call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Refused => "refused",
        }
    }
}

impl StoreError {
    /// An outage, with a message for people.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self::of_kind(StoreErrorKind::Unavailable, message)
    }

    /// A mistake that waiting does not mend, with a message for people: it should say what to do
    /// about it.
    pub fn refused(message: impl Into<Cow<'static, str>>) -> Self {
        Self::of_kind(StoreErrorKind::Refused, message)
    }

    /// A failure of this kind.
    pub fn of_kind(kind: StoreErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            message: message.into().into(),
            source: None,
        }
    }

    /// The same failure, with what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Whether it helps to wait.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The same failure once more, for somebody else who met with it. Its cause stays here.
    pub(crate) fn again(&self) -> Self {
        Self {
            kind: self.kind,
            message: Arc::clone(&self.message),
            source: None,
        }
    }

    /// What it says.
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

/// A policy could not take the place of the one in force, which goes on.
///
/// What it says is everything that is wrong with the file, as far as it could be read.
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

/// Why something could not be built, or a [`Limiter`](crate::Limiter) call gave no decision.
///
/// A denial is never an error: it is a [`Decision`](crate::Decision).
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A setting was wrong, or a call made no sense, for instance a per-call limit of 0.
    Invalid(ValidationError),
    /// Several settings were wrong.
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
