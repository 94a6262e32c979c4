//! A header that may stand there once.

use http::HeaderName;

use crate::error::Invalid;
use crate::head::Head;

/// What stands in a header of which there must be one line at most.
pub(super) enum Line<'a> {
    Absent,
    Only(&'a [u8]),
    /// More than one: whoever reads the first and whoever reads the last disagree.
    Ambiguous,
}

impl<'a> Line<'a> {
    pub(super) fn of(head: &Head<'a>, name: &HeaderName) -> Self {
        let mut lines = head.headers().get_all(name).iter();
        match (lines.next(), lines.next()) {
            (None, _) => Self::Absent,
            (Some(line), None) => Self::Only(line.as_bytes()),
            (Some(_), Some(_)) => Self::Ambiguous,
        }
    }
}

/// The name of a header, in upper or lower case.
pub(super) fn header_name(field: &'static str, name: &str) -> Result<HeaderName, Invalid> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        let shown: String = name.chars().take(64).collect();
        Invalid::new(
            field,
            shown.escape_debug(),
            "the name of a header, such as x-api-key",
        )
    })
}
