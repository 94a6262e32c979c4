//! The header in which proxies name the client: [`ForwardedHeader`].

use http::HeaderName;

use crate::error::named;

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

named!(ForwardedHeader, "forwarding header", trim, to_ascii_lowercase {
    XForwardedFor => "x-forwarded-for",
    Forwarded => "forwarded",
    XRealIp => "x-real-ip",
    CfConnectingIp => "cf-connecting-ip",
    TrueClientIp => "true-client-ip",
});

impl From<ForwardedHeader> for HeaderName {
    fn from(header: ForwardedHeader) -> Self {
        Self::from_static(header.name())
    }
}
