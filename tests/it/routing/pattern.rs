//! Path patterns as routers write them.

/// Joins a mount prefix and an inner pattern as axum does.
pub(super) fn join(prefix: &str, path: &str) -> String {
    if prefix.is_empty() {
        path.to_owned()
    } else if prefix.ends_with('/') {
        format!("{prefix}{}", path.trim_start_matches('/'))
    } else if path == "/" {
        prefix.to_owned()
    } else {
        format!("{prefix}{path}")
    }
}

/// Returns the pattern without parameter names: equal for patterns that match the same paths.
pub(super) fn shape(pattern: &str) -> String {
    let segments = segments(pattern).map(|segment| match Kind::of(segment) {
        Kind::Literal => segment.to_owned(),
        Kind::Prefixed(prefix) => format!("{prefix}{{}}"),
        Kind::Parameter => "{}".to_owned(),
        Kind::Wildcard => "{*}".to_owned(),
    });
    ["/", &segments.collect::<Vec<_>>().join("/")].concat()
}

/// Returns the segments; a trailing slash is an empty segment.
pub(super) fn segments(pattern: &str) -> impl Iterator<Item = &str> {
    pattern.split('/').skip(1)
}

/// The kinds of segments, in the order in which `matchit` prefers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    Literal,
    Prefixed(&'a str),
    Parameter,
    Wildcard,
}

impl<'a> Kind<'a> {
    pub(super) fn of(segment: &'a str) -> Self {
        match segment.find('{') {
            None => Self::Literal,
            Some(_) if segment.contains("{{") => Self::Literal,
            Some(0) if segment.starts_with("{*") => Self::Wildcard,
            Some(0) => Self::Parameter,
            Some(at) => Self::Prefixed(&segment[..at]),
        }
    }

    const fn rank(self) -> u8 {
        match self {
            Self::Literal => 3,
            Self::Prefixed(_) => 2,
            Self::Parameter => 1,
            Self::Wildcard => 0,
        }
    }
}

/// Returns the pattern of the place where a wildcard pattern begins: `/a` for `/a/{*rest}`.
pub(super) fn wildcard_root(pattern: &str) -> Option<&str> {
    pattern.split_once("/{*").map(|(root, _)| root)
}

/// The part of a path that one router leaves to another: everything after `len` segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Boundary {
    pub(super) id: usize,
    pub(super) len: usize,
    /// Whether axum may hand another path to the inner router than its pattern defines, if the path
    /// of the request has an empty segment.
    ///
    /// axum matches the prefixes of nested routers as one pattern, but removes them one by one,
    /// and loses one slash of two between them. In `nest("/a", nest_service("/{x}/b", inner))`,
    /// `/a//b` matches with an empty `x`. After `/a`, only `/b` is left, so `/{x}/b` is not
    /// removed, and `inner` runs the handler of `/b` or `/{y}` for a path that has no such segment.
    pub(super) shifts: bool,
}

impl Boundary {
    pub(super) fn new(id: usize, prefix: &str) -> Self {
        let len = segments(prefix.trim_end_matches('/')).count();
        Self {
            id,
            len,
            shifts: false,
        }
    }
}

/// Whether `outer` hides `inner` although `inner` is more literal.
///
/// This is the limit that the security guide names. The outer router does not look into a mount,
/// so its `/a/{x}/c` wins over the mount at `/a`, even if the mounted router has `/a/b/c`. The
/// policy has one tree for all routes and prefers `/a/b/c`. The same holds for the fallback of a
/// nested router, because axum tries it after all routes: `/{x}/c` wins over the fallback of a
/// router that is nested at `/a`.
///
/// True if the patterns first differ behind a boundary that only `inner` lies behind, and `inner`
/// is more literal there.
pub(super) fn hides(
    (outer, outer_behind): (&str, &[Boundary]),
    (inner, inner_behind): (&str, &[Boundary]),
) -> bool {
    more_literal_at(inner, outer).is_some_and(|at| {
        let mut behind = inner_behind.iter();
        behind.any(|boundary| boundary.len <= at && !outer_behind.contains(boundary))
    })
}

/// Whether a router prefers a pattern to another one where both match.
pub(super) fn is_more_literal(pattern: &str, other: &str) -> bool {
    more_literal_at(pattern, other).is_some()
}

/// Returns the first segment in which two patterns differ, if that of `pattern` is preferred.
fn more_literal_at(pattern: &str, other: &str) -> Option<usize> {
    let (shape, other_shape) = (shape(pattern), shape(other));
    let mut pairs = segments(&shape).zip(segments(&other_shape));
    let at = pairs.position(|(segment, other)| segment != other)?;
    let rank = |pattern: &str| Kind::of(segments(pattern).nth(at).unwrap()).rank();
    (rank(pattern) > rank(other)).then_some(at)
}

#[test]
fn only_a_more_literal_pattern_behind_a_boundary_is_hidden() {
    let mount = [Boundary::new(0, "/a")];
    let hidden = |outer, inner| hides((outer, &[]), (inner, &mount));
    assert!(hidden("/a/{x}/c", "/a/b/c"));
    assert!(hidden("/a/{x}/c", "/a/u_{y}/c"));
    assert!(hidden("/a/b/{*rest}", "/a/b/c"));
    assert!(!hidden("/a/b/c", "/a/{x}/c"));
    assert!(!hidden("/{x}/b/c", "/a/b/c"), "the mount itself is seen");
    assert!(!hides(("/a/{x}/c", &mount), ("/a/b/c", &mount)));
}
