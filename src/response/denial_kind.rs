//! Reason for a rejection: [`DenialKind`].

use http::StatusCode;

/// Reason for a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DenialKind {
    /// A quota is exhausted.
    Limited,
    /// The store has failed, and the failure mode of a rule is `deny`.
    Unavailable,
    /// The credentials are wrong, and the layer rejects such requests.
    Unauthorized,
    /// The path has more readings than can be limited.
    InvalidPath,
    /// The path is too long to be limited.
    PathTooLong,
    /// The credentials contradict each other: header lines that differ, tokens of different users,
    /// too many tokens.
    AmbiguousCredentials,
}

impl DenialKind {
    /// Returns the HTTP status: 429, 503, 401, 400 or 414.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Limited => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unauthorized | Self::AmbiguousCredentials => StatusCode::UNAUTHORIZED,
            Self::InvalidPath => StatusCode::BAD_REQUEST,
            Self::PathTooLong => StatusCode::URI_TOO_LONG,
        }
    }

    /// Returns the machine-readable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Limited => "RATE_LIMIT_EXCEEDED",
            Self::Unavailable => "RATE_LIMIT_UNAVAILABLE",
            Self::Unauthorized => "INVALID_CREDENTIALS",
            Self::InvalidPath => "INVALID_PATH",
            Self::PathTooLong => "PATH_TOO_LONG",
            Self::AmbiguousCredentials => "AMBIGUOUS_CREDENTIALS",
        }
    }
}
