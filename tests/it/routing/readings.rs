//! The readings of a path, listed one by one: slow, but simple enough to be held against the
//! route tree of the library.

use std::collections::{BTreeMap, BTreeSet};

use matchit::Router as Matcher;

use super::pattern::{Kind, segments, wildcard_root};
use super::tree::{Route, Target};

/// More readings than this are not listed.
const MOST: usize = 400;

/// Lists readings of a path: each segment as it is written or decoded, each empty segment kept or
/// left out, each `%2F` as a slash or as a character.
///
/// The list is cut off, so it can prove that a path has a reading, not that it has none.
pub(super) fn readings(path: &str) -> BTreeSet<String> {
    let mut readings = BTreeSet::from([String::new()]);
    let rest = path.strip_prefix('/').unwrap_or(path);
    for part in rest.split('/') {
        let mut next = BTreeSet::new();
        for reading in readings {
            for piece in pieces(part) {
                next.extend(piece.is_empty().then(|| reading.clone()));
                next.insert(format!("{reading}/{piece}"));
            }
            if next.len() > MOST {
                break;
            }
        }
        readings = next;
    }
    if readings.remove("") {
        readings.insert("/".to_owned());
    }
    readings
}

/// The forms of what is between two slashes.
fn pieces(part: &str) -> BTreeSet<String> {
    let mut pieces = BTreeSet::from([part.to_owned()]);
    let with_slashes = part.replace("%2f", "%2F");
    if with_slashes.contains("%2F") {
        pieces.insert(with_slashes.replace("%2F", "/"));
    }
    if let Some(plain) = decoded(part) {
        pieces.insert(plain);
    }
    pieces
}

/// Decodes ASCII characters. Others are not in any pattern.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut decoded = parts.next()?.to_owned();
    for part in parts {
        let byte = part.get(..2)?;
        let byte = u8::from_str_radix(byte, 16).ok()?;
        decoded.push(byte.is_ascii().then_some(char::from(byte))?);
        decoded.push_str(&part[2..]);
    }
    Some(decoded)
}

/// Whether a reading of the path matches the pattern: an empty segment may be a parameter, a wildcard
/// may match nothing, and a slash at the end makes no difference. True if there are too many
/// readings to list.
pub(super) fn can_match(pattern: &str, path: &str) -> bool {
    let readings = readings(path);
    readings.len() > MOST || readings.iter().any(|reading| is_match(pattern, reading))
}

fn is_match(pattern: &str, reading: &str) -> bool {
    let mut texts = segments(reading.trim_end_matches('/'));
    for segment in segments(pattern.trim_end_matches('/')) {
        let is_same = match (Kind::of(segment), texts.next()) {
            (Kind::Wildcard, _) => return true,
            (Kind::Literal, text) => {
                let literal = segment.replace("{{", "{").replace("}}", "}");
                text == Some(&literal)
            }
            (Kind::Prefixed(prefix), text) => text.is_some_and(|text| text.starts_with(prefix)),
            (Kind::Parameter, text) => text.is_some() || reading.ends_with('/'),
        };
        if !is_same {
            return false;
        }
    }
    texts.next().is_none()
}

/// The routes of a policy for one method, matched as they are written.
pub(super) struct Table<'a> {
    /// All routes by shape.
    all: BTreeMap<String, &'a Route>,
    /// A route, and a wildcard route that begins there.
    routes: Matcher<Vec<&'a Target>>,
    /// Only the places where wildcard routes begin.
    roots: Matcher<Vec<&'a Target>>,
}

impl<'a> Table<'a> {
    pub(super) fn new(rules: &'a [Route], method: &str) -> Self {
        let mut routes: BTreeMap<String, Vec<&'a Target>> = BTreeMap::new();
        let mut roots: BTreeMap<String, Vec<&'a Target>> = BTreeMap::new();
        let mut all = BTreeMap::new();
        let get = (method == "HEAD").then_some(Some("GET"));
        for method in [Some(Some(method)), get, Some(None)].into_iter().flatten() {
            for rule in rules.iter().filter(|rule| rule.method == method) {
                let shape = rule.shape();
                if routes.contains_key(&shape) {
                    continue;
                }
                if let Some(root) = wildcard_root(&shape) {
                    let root = if root.is_empty() { "/" } else { root };
                    roots.insert(root.to_owned(), vec![&rule.target]);
                }
                all.insert(shape.clone(), rule);
                routes.insert(shape, vec![&rule.target]);
            }
        }
        for (root, targets) in &roots {
            let route = routes.entry(root.clone()).or_default();
            route.extend(targets);
        }
        Self {
            all,
            routes: matcher(routes),
            roots: matcher(roots),
        }
    }

    /// Whether plain paths such as this one reach one route at most. They can reach several where a
    /// wildcard begins, and if a route ends in `/`.
    pub(super) fn has_one_target(&self, path: &str) -> bool {
        let has_slash = |shape: &String| shape.len() > 1 && shape.ends_with('/');
        self.roots.at(path).is_err() && !self.all.keys().any(has_slash)
    }

    /// The route that a path matches as it is written.
    pub(super) fn route_at(&self, path: &str) -> Option<&'a Route> {
        let found = self.routes.at(path).ok()?;
        let target = *found.value.first()?;
        let mut all = self.all.values();
        all.find(|rule| std::ptr::eq(&raw const rule.target, target))
            .copied()
    }

    /// Whether this path, read only as it is written, is exempt.
    pub(super) fn exempts(&self, path: &str) -> bool {
        let route = self.routes.at(path).ok();
        let trimmed = path.trim_end_matches('/');
        let root = || (trimmed != path).then(|| self.roots.at(trimmed).ok());
        let found = route.or_else(|| root().flatten());
        let is_exempt = |targets: &Vec<&Target>| targets.iter().all(|t| **t == Target::Exempt);
        found.is_some_and(|found| is_exempt(found.value))
    }
}

/// Leaves out what conflicts: only roots do.
fn matcher<T>(shapes: BTreeMap<String, T>) -> Matcher<T> {
    let mut matcher = Matcher::new();
    for (shape, value) in shapes {
        let pattern = shape.replace("{}", "{p}").replace("{*}", "{*p}");
        _ = matcher.insert(pattern, value);
    }
    matcher
}

#[test]
fn a_pattern_can_match_any_reading() {
    for (pattern, path) in [
        ("/a/{*p}", "/a"),
        ("/a/{*p}", "/a//"),
        ("/a/{*p}", "/%61/x"),
        ("/a/{p}", "/a/"),
        ("/a/u_{p}", "/a//u_1"),
        ("/{{x}}", "/{x}/"),
    ] {
        assert!(can_match(pattern, path), "{pattern}: {path}");
    }
    for (pattern, path) in [
        ("/a/{*p}", "/b"),
        ("/a/b", "/a/c"),
        ("/a/{p}", "/a/b/c"),
        ("/{{x}}", "/y"),
    ] {
        assert!(!can_match(pattern, path), "{pattern}: {path}");
    }
}

#[test]
fn readings_include_every_form_that_a_server_may_use() {
    for (path, reading) in [
        ("/a//b", "/a/b"),
        ("/a//b", "/a//b"),
        ("/a/", "/a"),
        ("/%61", "/a"),
        ("/%61/%62", "/%61/b"),
        ("/a%2Fb", "/a/b"),
        ("/a%2Fb", "/a%2Fb"),
        ("///a//", "/a"),
    ] {
        assert!(readings(path).contains(reading), "{path}: {reading}");
    }
}
