//! Which headers are written, and how.

use std::fmt;
use std::str::FromStr;

use crate::error::ValidationError;

/// Which families of headers responses carry.
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
    /// `X-RateLimit-Limit` and its kin, which most clients know.
    #[default]
    Legacy,
    /// `RateLimit-Policy` and `RateLimit`, which are on their way to be a standard.
    Ietf,
    /// Both families.
    Both,
    /// No rate limit headers; denials still carry `Retry-After`.
    None,
}

/// How `X-RateLimit-Reset` tells the time.
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
    /// Seconds from now, for clients that expect that.
    DeltaSeconds,
}

/// Which draft of the IETF fields is written. The wire format is still moving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IetfDraft {
    /// draft-ietf-httpapi-ratelimit-headers-11.
    #[default]
    Draft11,
}

/// Reads and shows an enum by the names that files use.
macro_rules! named {
    ($type:ident, $field:literal, $expected:literal, $($variant:ident => $name:literal),+) => {
        impl FromStr for $type {
            type Err = ValidationError;

            fn from_str(text: &str) -> Result<Self, ValidationError> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    other => Err(ValidationError::new($field, other, $expected)),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $name,)+
                })
            }
        }
    };
}

named! {
    HeaderSet, "header set", "legacy, ietf, both or none",
    Legacy => "legacy", Ietf => "ietf", Both => "both", None => "none"
}
named! {
    ResetStyle, "reset style", "unix-seconds or delta-seconds",
    UnixSeconds => "unix-seconds", DeltaSeconds => "delta-seconds"
}

/// Everything that can be chosen about rate limit headers.
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
    draft: IetfDraft,
}

impl HeaderStyle {
    /// These families, in their usual form.
    #[must_use]
    pub const fn new(set: HeaderSet) -> Self {
        Self {
            set,
            reset: ResetStyle::UnixSeconds,
            draft: IetfDraft::Draft11,
        }
    }

    /// How `X-RateLimit-Reset` tells the time.
    #[must_use]
    pub const fn with_reset(mut self, reset: ResetStyle) -> Self {
        self.reset = reset;
        self
    }

    /// Which draft of the IETF fields is written.
    #[must_use]
    pub const fn with_draft(mut self, draft: IetfDraft) -> Self {
        self.draft = draft;
        self
    }

    /// The families.
    #[must_use]
    pub const fn set(self) -> HeaderSet {
        self.set
    }

    /// How `X-RateLimit-Reset` tells the time.
    #[must_use]
    pub const fn reset(self) -> ResetStyle {
        self.reset
    }

    /// Which draft of the IETF fields is written.
    #[must_use]
    pub const fn draft(self) -> IetfDraft {
        self.draft
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
