//! Which way a request took, as far as routers tell.

use crate::head::Head;
use crate::policy::Taken;

/// axum strips the prefixes of mounts off the URI, and keeps the whole one aside.
#[cfg(feature = "axum")]
pub(super) fn taken<'a>(head: &Head<'a>) -> Taken<'a> {
    use axum::extract::{MatchedPath, NestedPath, OriginalUri};

    let now = head.path();
    let original = head
        .extension::<OriginalUri>()
        .map_or(now, |original| original.0.path());
    // A mount leaves the end of the path, or `/` if nothing is left.
    let is_stripped =
        original.ends_with(now) || now == "/" && head.extension::<NestedPath>().is_some();
    Taken {
        path: original,
        pattern: head.extension::<MatchedPath>().map(MatchedPath::as_str),
        changed: (!is_stripped).then_some(now),
    }
}

#[cfg(not(feature = "axum"))]
pub(super) fn taken<'a>(head: &Head<'a>) -> Taken<'a> {
    Taken {
        path: head.path(),
        ..Taken::default()
    }
}
