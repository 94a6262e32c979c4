//! Headers that may have only one value: [`SingleHeader`].

use http::HeaderName;

use crate::error::ValidationError;
use crate::head::RequestHead;

/// Lines of a header that must not have several values.
pub(super) enum SingleHeader<'a> {
    Absent,
    Only(&'a [u8]),
    /// Several lines with one value.
    Identical(&'a [u8]),
    /// Several lines that differ: a reader of the first and a reader of the last disagree.
    Different,
}

impl<'a> SingleHeader<'a> {
    pub(super) fn of(head: &RequestHead<'a>, name: &HeaderName) -> Self {
        let mut lines = head.headers().get_all(name).iter();
        let Some(first) = lines.next() else {
            return Self::Absent;
        };
        let (mut is_only, first) = (true, first.as_bytes());
        for line in lines {
            if line.as_bytes() != first {
                return Self::Different;
            }
            is_only = false;
        }
        if is_only {
            Self::Only(first)
        } else {
            Self::Identical(first)
        }
    }
}

/// Parses the name of a header, in upper or lower case.
pub(super) fn header_name(field: &'static str, name: &str) -> Result<HeaderName, ValidationError> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        let shown: String = name.chars().take(64).collect();
        ValidationError::new(
            field,
            shown.escape_debug(),
            "the name of a header, such as x-api-key",
        )
    })
}
