//! Which way a request took, as far as routers tell.

use crate::head::Head;
use crate::policy::Taken;

/// axum takes prefixes off the URI of nested routes, and keeps the whole one aside.
#[cfg(feature = "axum")]
pub(super) fn taken<'a>(head: &Head<'a>) -> Taken<'a> {
    use axum::extract::{MatchedPath, OriginalUri};

    let now = head.path();
    let original = head
        .extension::<OriginalUri>()
        .map_or(now, |original| original.0.path());
    Taken {
        path: original,
        pattern: head.extension::<MatchedPath>().map(MatchedPath::as_str),
        changed: (!original.ends_with(now)).then_some(now),
    }
}

#[cfg(not(feature = "axum"))]
pub(super) fn taken<'a>(head: &Head<'a>) -> Taken<'a> {
    Taken {
        path: head.path(),
        ..Taken::default()
    }
}
