//! Invalid settings.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

/// Invalid setting: the field, its value, and what is allowed.
///
/// Constructors and builders return it, so that a wrong setting is found before the first request.
///
/// ```
/// use tollgate::Quota;
///
/// let error = Quota::per_hour(0).unwrap_err();
/// assert_eq!(error.field(), "quota limit");
/// assert_eq!(error.value(), "0");
/// assert!(error.to_string().contains("blocked"));
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

    /// Returns the first error without its path, for functions with a single argument.
    ///
    /// Only for a list with an error, as [`or`](Self::or) returns it.
    pub(crate) fn into_first(self) -> ValidationError {
        let first = self.0.into_iter().next();
        let first = first.map(|error| ValidationError {
            path: None,
            ..error
        });
        first.unwrap_or_else(|| ValidationError::new("setting", "unknown", "another value"))
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
