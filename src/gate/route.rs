//! Which route a request took, as far as routers tell.

use crate::head::Head;

/// The whole path of a request, and the pattern that a router matched it with.
pub(super) struct Taken<'a> {
    pub(super) path: &'a str,
    pub(super) pattern: Option<&'a str>,
}

impl<'a> Taken<'a> {
    /// axum takes prefixes off the URI of nested routes, and keeps the whole one aside.
    #[cfg(feature = "axum")]
    pub(super) fn by(head: &Head<'a>) -> Self {
        use axum::extract::{MatchedPath, OriginalUri};

        let original = head.extension::<OriginalUri>();
        Self {
            path: original.map_or_else(|| head.path(), |original| original.0.path()),
            pattern: head.extension::<MatchedPath>().map(MatchedPath::as_str),
        }
    }

    #[cfg(not(feature = "axum"))]
    pub(super) fn by(head: &Head<'a>) -> Self {
        Self {
            path: head.path(),
            pattern: None,
        }
    }
}
