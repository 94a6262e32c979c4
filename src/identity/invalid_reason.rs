//! Why a credential is not accepted: [`InvalidReason`].

use crate::error::named;

/// Why a source does not accept a credential.
///
/// Callers never see the reason. It is a field of the DEBUG event `rate_limit_token_refused` and
/// a label of the metric `tollgate_invalid_credentials_total`.
///
/// ```
/// use tollgate::identity::InvalidReason;
///
/// assert_eq!(InvalidReason::NotYetValid.name(), "not-yet-valid");
/// assert!(InvalidReason::Signature.is_charged());
/// assert!(!InvalidReason::Expired.is_charged());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InvalidReason {
    /// The token has expired (`exp`). Not charged.
    Expired,
    /// The token is not valid yet (`nbf`). Not charged.
    NotYetValid,
    /// There is no key to verify with: the key set is empty. Not charged. Where invalid credentials
    /// are rejected, the request gets 503 instead of 401.
    KeysUnavailable,
    /// The signature is right, but a claim of the identity has an unusable value, or the token names
    /// no user and is from another issuer or for another audience. Not charged.
    Claims,
    /// The signature does not match any key that fits.
    Signature,
    /// The algorithm is not one of those that are accepted.
    Algorithm,
    /// No key has the name and the kind that the token names.
    UnknownKey,
    /// `iss` is not one of those that are accepted.
    Issuer,
    /// `aud` is not one of those that are accepted.
    Audience,
    /// The token cannot be read, or `exp` or `nbf` is not a number, or `exp` is missing.
    Malformed,
    /// The API key is not known.
    ApiKey,
    /// Another source did not accept the credential, or it panicked.
    Custom,
}

impl InvalidReason {
    /// Whether such a credential is wrong, and therefore charged to the client's
    /// [`failed_auth_quota`](crate::RateLimitLayerBuilder::failed_auth_quota).
    ///
    /// A credential that was right at another time, or that only a mistake in the configuration
    /// makes unusable, is not.
    #[must_use]
    pub const fn is_charged(self) -> bool {
        !matches!(
            self,
            Self::Expired | Self::NotYetValid | Self::KeysUnavailable | Self::Claims
        )
    }
}

named!(InvalidReason {
    Expired => "expired",
    NotYetValid => "not-yet-valid",
    KeysUnavailable => "keys-unavailable",
    Claims => "claims",
    Signature => "signature",
    Algorithm => "algorithm",
    UnknownKey => "unknown-key",
    Issuer => "issuer",
    Audience => "audience",
    Malformed => "malformed",
    ApiKey => "api-key",
    Custom => "custom",
});
