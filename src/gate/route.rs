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
    // A mount leaves the end of the path, or `/` if nothing is left. Rules name the whole path
    // there. Other middleware that strips a prefix leaves a path that a rule may name.
    let nested = head.extension::<NestedPath>().map(NestedPath::as_str);
    let is_stripped =
        original == now || (original.ends_with(now) || now == "/") && nested.is_some();
    Taken {
        path: original,
        pattern: head.extension::<MatchedPath>().map(MatchedPath::as_str),
        changed: (!is_stripped).then_some(now),
        // Only read if the path was changed.
        mount: nested
            .filter(|_| !is_stripped)
            .map_or("", |nested| beginning(original, nested)),
    }
}

/// The beginning of a path that has as many segments as `pattern`.
#[cfg(feature = "axum")]
fn beginning<'a>(path: &'a str, pattern: &str) -> &'a str {
    let mut slashes = path.match_indices('/');
    let end = slashes.nth(pattern.matches('/').count());
    end.map_or(path, |(end, _)| &path[..end])
}

#[cfg(not(feature = "axum"))]
pub(super) fn taken<'a>(head: &Head<'a>) -> Taken<'a> {
    Taken {
        path: head.path(),
        ..Taken::default()
    }
}
