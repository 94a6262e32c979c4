//! What happens to requests with wrong credentials: [`OnInvalidCredentials`].

use crate::error::named;

/// What happens to requests with wrong credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnInvalidCredentials {
    /// The caller is unauthenticated, and limited by client IP. This is the default.
    #[default]
    Anonymous,
    /// The response is 401; for tokens 503, while there are no keys to verify them.
    Reject,
}

named!(OnInvalidCredentials, "on_invalid_credentials" {
    Anonymous => "anonymous",
    Reject => "reject",
});
