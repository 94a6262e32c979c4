//! Selection and format of rate-limit headers.

use crate::error::named;

/// Sets of headers that responses have.
///
/// ```
/// use tollgate::headers::HeaderSet;
///
/// let set: HeaderSet = "both".parse()?;
/// assert_eq!(set, HeaderSet::Both);
/// assert_eq!(set.to_string(), "both");
/// let refused = "draft".parse::<HeaderSet>().unwrap_err();
/// assert_eq!(refused.expected(), "legacy, ietf, both or none");
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeaderSet {
    /// `X-RateLimit-Limit`, `-Remaining`, `-Reset`, `-Policy` and `-Warning`.
    #[default]
    Legacy,
    /// `RateLimit-Policy` and `RateLimit` of the IETF draft.
    Ietf,
    /// Both sets.
    Both,
    /// No rate-limit headers. Denials still have `Retry-After`.
    None,
}

/// Format of `X-RateLimit-Reset`.
///
/// ```
/// use tollgate::headers::ResetStyle;
///
/// assert_eq!("delta-seconds".parse(), Ok(ResetStyle::DeltaSeconds));
/// assert_eq!(ResetStyle::default().to_string(), "unix-seconds");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResetStyle {
    /// Seconds since the Unix epoch.
    #[default]
    UnixSeconds,
    /// Seconds from now.
    DeltaSeconds,
}

named!(HeaderSet, "header set" {
    Legacy => "legacy",
    Ietf => "ietf",
    Both => "both",
    None => "none",
});

named!(ResetStyle, "reset style" {
    UnixSeconds => "unix-seconds",
    DeltaSeconds => "delta-seconds",
});

/// Settings of rate-limit headers.
///
/// ```
/// use tollgate::headers::{HeaderSet, HeaderStyle, ResetStyle};
///
/// const STYLE: HeaderStyle =
///     HeaderStyle::new(HeaderSet::Both).with_reset(ResetStyle::DeltaSeconds);
/// assert_eq!(STYLE.set(), HeaderSet::Both);
/// assert_eq!(HeaderStyle::default(), HeaderSet::Legacy.into());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HeaderStyle {
    set: HeaderSet,
    reset: ResetStyle,
}

impl HeaderStyle {
    /// Creates a style with this set and default formats.
    #[must_use]
    pub const fn new(set: HeaderSet) -> Self {
        Self {
            set,
            reset: ResetStyle::UnixSeconds,
        }
    }

    /// Sets the format of `X-RateLimit-Reset`.
    #[must_use]
    pub const fn with_reset(mut self, reset: ResetStyle) -> Self {
        self.reset = reset;
        self
    }

    /// Returns the set.
    #[must_use]
    pub const fn set(self) -> HeaderSet {
        self.set
    }

    /// Returns the format of `X-RateLimit-Reset`.
    #[must_use]
    pub const fn reset(self) -> ResetStyle {
        self.reset
    }

    pub(crate) const fn is_none(self) -> bool {
        matches!(self.set, HeaderSet::None)
    }

    pub(super) const fn has_legacy(self) -> bool {
        matches!(self.set, HeaderSet::Legacy | HeaderSet::Both)
    }

    pub(super) const fn has_ietf(self) -> bool {
        matches!(self.set, HeaderSet::Ietf | HeaderSet::Both)
    }
}

impl From<HeaderSet> for HeaderStyle {
    fn from(set: HeaderSet) -> Self {
        Self::new(set)
    }
}
