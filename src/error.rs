//! The errors of the crate: what was wrong, where, what was expected.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

/// A setting that cannot be used: which one, what it was, and what is allowed.
///
/// Every constructor in this crate that can refuse its input refuses it with this type, when
/// the thing is built and not when the first request arrives.
///
/// ```
/// use tollgate::Quota;
///
/// let refused = Quota::per_hour(0).unwrap_err();
/// assert_eq!(refused.field(), "quota amount");
/// assert_eq!(refused.value(), "0");
/// assert!(refused.to_string().contains("blocked"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    field: Cow<'static, str>,
    value: String,
    expected: Cow<'static, str>,
}

impl Invalid {
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
        }
    }

    /// What was set: `quota amount`, `store capacity`, …
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

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "invalid {}: found `{}`, expected {}",
            self.field, self.value, self.expected
        )
    }
}

impl StdError for Invalid {}

/// A store could not answer. The memory store never returns this.
///
/// It says nothing about the caller: a failed store is not a denial, and must not be turned
/// into one.
#[derive(Debug)]
pub struct StoreError {
    message: Cow<'static, str>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl StoreError {
    /// A failure with a message for people.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// The same failure, with what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
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

/// Why a [`Limiter`](crate::Limiter) call gave no decision.
///
/// A denial is never an error: it is a [`Decision`](crate::Decision).
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The call itself made no sense, for instance a per-call limit of 0.
    Invalid(Invalid),
    /// The store failed.
    Store(StoreError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(invalid) => invalid.fmt(f),
            Self::Store(error) => write!(f, "the rate limit store failed: {error}"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Invalid(_) => None,
            Self::Store(error) => Some(error),
        }
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
