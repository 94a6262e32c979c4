//! The path and the pattern that a request is matched by.

use crate::head::RequestHead;
use crate::policy::RoutedPath;

/// Reads the extensions that axum's routers leave. Mounts strip their prefix off the URI, and
/// `OriginalUri` has the whole path.
#[cfg(feature = "axum")]
pub(super) fn routed_path<'a>(head: &RequestHead<'a>) -> RoutedPath<'a> {
    use axum::extract::{MatchedPath, NestedPath, OriginalUri};

    let now = head.path();
    let original = head
        .extension::<OriginalUri>()
        .map_or(now, |original| original.0.path());
    let mounts = head.extension::<NestedPath>().map(NestedPath::as_str);
    let is_whole =
        original == now || mounts.is_some_and(|mounts| is_stripped(original, now, mounts));
    RoutedPath {
        path: original,
        pattern: head.extension::<MatchedPath>().map(MatchedPath::as_str),
        changed: (!is_whole).then_some(now),
        // Only read if the path was changed.
        mount: mounts
            .filter(|_| !is_whole)
            .map_or("", |mounts| beginning(original, mounts)),
    }
}

/// Returns whether `now` is the original path without the prefix of the nested routers: the removed
/// prefix has as many segments as their patterns.
///
/// Otherwise middleware has changed the path as well, and its end can be the path of another rule:
/// `/login` of `/api/login`. Between two mounts, axum can drop an empty segment. So empty segments
/// may be counted or not.
#[cfg(feature = "axum")]
fn is_stripped(original: &str, now: &str, mounts: &str) -> bool {
    let prefix = match original.strip_suffix(now) {
        Some(prefix) => prefix,
        // A mount leaves `/` if nothing else is left.
        None if now == "/" => original,
        None => return false,
    };
    let segments = |path| str::split(path, '/').skip(1);
    let expected = segments(mounts.trim_end_matches('/')).count();
    let not_empty = segments(prefix).filter(|segment| !segment.is_empty());
    not_empty.count() <= expected && expected <= segments(prefix).count()
}

/// Returns the beginning of a path that has as many segments as `pattern`.
#[cfg(feature = "axum")]
fn beginning<'a>(path: &'a str, pattern: &str) -> &'a str {
    let mut slashes = path.match_indices('/');
    let end = slashes.nth(pattern.matches('/').count());
    end.map_or(path, |(end, _)| &path[..end])
}

#[cfg(not(feature = "axum"))]
pub(super) fn routed_path<'a>(head: &RequestHead<'a>) -> RoutedPath<'a> {
    RoutedPath {
        path: head.path(),
        ..RoutedPath::default()
    }
}

#[cfg(all(test, feature = "axum"))]
mod tests {
    use super::is_stripped;

    #[test]
    fn a_mount_strips_as_many_segments_as_its_pattern_has() {
        for (original, now, mounts) in [
            ("/m/x", "/x", "/m"),
            ("/m/x", "/x", "/m/"),
            ("/m", "/", "/m"),
            ("/m/", "/", "/m"),
            ("/m//", "//", "/m"),
            ("/t/m/n/x", "/x", "/{t}/m/n"),
            ("//m/x", "/x", "/{t}/m"),
            ("/m//n/x", "/x", "/m/n"),
            ("/x", "/x", "/"),
        ] {
            assert!(is_stripped(original, now, mounts), "{original} {now}");
        }
        for (original, now, mounts) in [
            ("/m/api/x", "/x", "/m"),
            ("/m/api", "/", "/m"),
            ("/m/x", "/y", "/m"),
            ("/m/x", "/m/x", "/m"),
            ("/m/a/", "/a", "/m"),
        ] {
            assert!(!is_stripped(original, now, mounts), "{original} {now}");
        }
    }
}
