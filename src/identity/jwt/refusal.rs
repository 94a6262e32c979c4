//! Why a token is not believed: for those who have the log and wonder. Callers are never told.

use super::super::source::Identified;

/// What is wrong with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NotOne,
    TooLong,
    Garbled,
    NoTimes,
    Early,
    Expired,
    Issuer,
    Audience,
    Signature,
    Nobody,
}

impl Refusal {
    const fn why(self) -> &'static str {
        match self {
            Self::NotOne => "there is not exactly one where it should be",
            Self::TooLong => "it is longer than 8 KiB",
            Self::Garbled => "it is not three parts of base64url, the first two of them JSON",
            Self::NoTimes => "`exp` is missing, or `exp` or `nbf` is no number",
            Self::Early => "it is not valid yet (`nbf`)",
            Self::Expired => "it has expired (`exp`)",
            Self::Issuer => "`iss` is none that is accepted",
            Self::Audience => "`aud` is none that is accepted",
            Self::Signature => {
                "none of the keys has signed it by one of the algorithms that are accepted"
            }
            Self::Nobody => {
                "the claim that says who it is, or one beside it, is no text of 1 to 256 bytes"
            }
        }
    }

    /// Tells those who listen to everything.
    #[cold]
    pub(super) fn told(self) -> Identified {
        tell(self.why());
        Identified::Invalid
    }
}

#[cfg(feature = "tracing")]
fn tell(why: &'static str) {
    tracing::debug!(target: "tollgate", why, "rate_limit_token_refused");
}

#[cfg(not(feature = "tracing"))]
const fn tell(_: &'static str) {}
