//! Errors of the crate.

mod named;
mod store;
mod validation;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

pub(crate) use self::named::{named, unknown_name};
pub use self::store::{StoreError, StoreErrorKind};
pub use self::validation::{ValidationError, ValidationErrors};

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
