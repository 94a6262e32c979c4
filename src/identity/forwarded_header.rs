//! The header in which proxies name the client: [`ForwardedHeader`].

use std::fmt;
use std::str::FromStr;

use http::HeaderName;

use crate::error::ValidationError;

/// Header in which proxies pass on the client IP.
///
/// ```
/// use tollgate::identity::ForwardedHeader;
///
/// let header: ForwardedHeader = "CF-Connecting-IP".parse()?;
/// assert_eq!(header, ForwardedHeader::CfConnectingIp);
/// assert!("x-forwarded".parse::<ForwardedHeader>().is_err());
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`: a list. Each proxy appends the address of its peer.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239): a list with `for=`.
    Forwarded,
    /// `X-Real-IP`: one address, by nginx.
    XRealIp,
    /// `CF-Connecting-IP`: one address, by Cloudflare.
    CfConnectingIp,
    /// `True-Client-IP`: one address, by Akamai and Cloudflare.
    TrueClientIp,
}

impl ForwardedHeader {
    const ALL: [Self; 5] = [
        Self::XForwardedFor,
        Self::Forwarded,
        Self::XRealIp,
        Self::CfConnectingIp,
        Self::TrueClientIp,
    ];

    /// The name of the header, in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
            Self::XRealIp => "x-real-ip",
            Self::CfConnectingIp => "cf-connecting-ip",
            Self::TrueClientIp => "true-client-ip",
        }
    }
}

impl fmt::Display for ForwardedHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<ForwardedHeader> for HeaderName {
    fn from(header: ForwardedHeader) -> Self {
        Self::from_static(header.as_str())
    }
}

/// The name of the header, in upper or lower case.
impl FromStr for ForwardedHeader {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        let named = |header: &Self| header.as_str().eq_ignore_ascii_case(text.trim());
        Self::ALL.into_iter().find(named).ok_or_else(|| {
            ValidationError::new(
                "forwarding header",
                text,
                "x-forwarded-for, forwarded, x-real-ip, cf-connecting-ip or true-client-ip",
            )
        })
    }
}
