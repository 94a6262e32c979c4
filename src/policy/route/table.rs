//! All routes of a policy, and which of them a request reaches.

use std::borrow::Cow;

use http::Method;

use super::Route;
use super::path::{PathRejection, is_plain, rejection};
use super::tree::Tree;
use super::walk::{Reached, walk};

/// All routes of a policy.
///
/// There is one table per method, so that a route of another method never hides a less specific
/// one of this method.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    pub(super) by_method: Vec<(Method, RouteTable)>,
    /// For methods that no route names.
    pub(super) any: RouteTable,
    pub(super) registered: Vec<RegisteredRoute>,
}

/// The routes of one method, in two forms.
#[derive(Debug, Default)]
pub(super) struct RouteTable {
    /// For plain paths: one look-up.
    pub(super) matcher: matchit::Router<PatternEntry>,
    /// For all other paths: a walk.
    pub(super) tree: Tree,
}

/// A route and its target.
#[derive(Debug)]
pub(super) struct RegisteredRoute {
    pub(super) route: Route,
    pub(super) target: RouteTarget,
}

/// Endpoint or exemption that a route belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteTarget {
    /// Index of an endpoint.
    Endpoint(usize),
    /// Index of an exempt route.
    Exempt(usize),
}

/// Path of a request, and what routers and middleware have made of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoutedPath<'a> {
    /// The whole path, as the first router saw it.
    pub(crate) path: &'a str,
    /// The pattern that a router matched.
    pub(crate) pattern: Option<&'a str>,
    /// The path as it is now, if something else than a mount has changed it.
    pub(crate) changed: Option<&'a str>,
    /// The beginning of the whole path that mounts have stripped. Empty outside of mounts, and if
    /// nothing else has changed the path.
    pub(crate) mount: &'a str,
}

/// Result of a look-up: the routes that a request reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RouteMatch {
    /// No route.
    Unmatched,
    /// One endpoint.
    Endpoint(usize),
    /// An exempt route, and no reading reaches anything else.
    Exempt(usize),
    /// Several readings that reach different routes.
    Several(Box<Readings>),
    Rejected(PathRejection),
}

/// Endpoints that the readings of one path reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Readings {
    /// Each endpoint once, at least one.
    pub(crate) endpoints: Vec<usize>,
    /// Whether some reading reaches no endpoint.
    pub(crate) is_unmatched: bool,
}

/// Value of a pattern in the matcher.
#[derive(Clone, Copy, Debug)]
pub(super) struct PatternEntry {
    /// Index among the registered routes. `None` where only a wildcard begins.
    pub(super) route: Option<usize>,
    /// Target of the route, so that most requests need no second look-up.
    pub(super) target: Option<RouteTarget>,
    /// The target of the wildcard that begins here. A path that ends here has several readings.
    pub(super) wildcard: Option<RouteTarget>,
}

impl From<Option<RouteTarget>> for RouteMatch {
    #[inline]
    fn from(target: Option<RouteTarget>) -> Self {
        match target {
            Some(RouteTarget::Endpoint(endpoint)) => Self::Endpoint(endpoint),
            Some(RouteTarget::Exempt(route)) => Self::Exempt(route),
            None => Self::Unmatched,
        }
    }
}

impl From<Reached> for RouteMatch {
    fn from(reached: Reached) -> Self {
        let mut endpoints = Vec::new();
        let mut exempt = None;
        for target in reached.targets {
            match target {
                RouteTarget::Endpoint(endpoint) => endpoints.push(endpoint),
                RouteTarget::Exempt(route) => exempt = exempt.or(Some(route)),
            }
        }
        match (&*endpoints, exempt, reached.is_unmatched) {
            ([], Some(route), false) => Self::Exempt(route),
            ([], _, _) => Self::Unmatched,
            ([only], _, false) => Self::Endpoint(*only),
            (_, _, is_unmatched) => Self::Several(Box::new(Readings {
                endpoints,
                is_unmatched,
            })),
        }
    }
}

impl RouteTable {
    /// Returns whether the pattern determines which handler runs: it has no wildcard, and no
    /// wildcard rule begins there, with or without a slash at its end. (The pattern of a mount does
    /// not differ from that of a route. A mount in a mount leaves empty segments in it.)
    fn is_decided(&self, routed: &RoutedPath<'_>) -> bool {
        routed.pattern.is_some_and(|pattern| {
            let shorter = without_slash(pattern).unwrap_or(pattern);
            let begins_wildcard = |pattern| {
                let path = unescaped(pattern);
                let entry = self.matcher.at(&path);
                entry.is_ok_and(|entry| entry.value.wildcard.is_some())
            };
            !takes_rest(pattern)
                && !pattern.contains("//")
                && !begins_wildcard(pattern)
                && !begins_wildcard(shorter)
        })
    }

    /// Walks the tree along the path, and along what it was changed to. Inside of a mount, the
    /// changed path has to be read behind the path of the mount.
    fn walk(&self, routed: &RoutedPath<'_>) -> Result<Reached, PathRejection> {
        let mut all = Reached::default();
        let mounted = routed.changed.filter(|_| !routed.mount.is_empty());
        let mounted = mounted.map(|path| format!("{}{path}", routed.mount));
        let paths = [Some(routed.path), routed.changed, mounted.as_deref()];
        for path in paths.into_iter().flatten() {
            if let Some(rejection) = rejection(path) {
                return Err(rejection);
            }
            let reached = walk(&self.tree, path)?;
            for target in reached.targets {
                if !all.targets.contains(&target) {
                    all.targets.push(target);
                }
            }
            all.is_unmatched |= reached.is_unmatched;
        }
        Ok(all)
    }
}

impl Routes {
    pub(crate) const fn is_empty(&self) -> bool {
        self.registered.is_empty()
    }

    /// Finds what a request reaches: by its path, and by the pattern that a router matched.
    #[inline]
    pub(crate) fn find(&self, method: &Method, routed: &RoutedPath<'_>) -> RouteMatch {
        if self.registered.is_empty() {
            return RouteMatch::Unmatched;
        }
        let own = self.by_method.iter().find(|(known, _)| known == method);
        let table = own.map_or(&self.any, |(_, table)| table);
        let entry = table.matcher.at(routed.path).ok().map(|found| *found.value);
        let agrees = match (entry, routed.pattern) {
            (Some(entry), None) => entry.wildcard.is_none(),
            (Some(entry), Some(pattern)) => {
                let path = self.path_of(entry);
                entry.wildcard.is_none() && path.is_some_and(|path| is_same_shape(path, pattern))
            }
            (None, pattern) => pattern.is_none(),
        };
        // Only a router that has matched a pattern rules out that a slash is appended.
        let is_end_known = !table.tree.has_trailing_slash()
            || routed.pattern.is_some_and(|pattern| !takes_rest(pattern));
        let has_one_reading = agrees && is_end_known && routed.changed.is_none();
        if has_one_reading && is_plain(routed.path) {
            return entry.and_then(|entry| entry.target).into();
        }
        self.find_all(table, entry, routed)
    }

    /// Finds what all readings reach. Called if there may be several, or if path and pattern
    /// belong to different routes.
    #[cold]
    fn find_all(
        &self,
        table: &RouteTable,
        entry: Option<PatternEntry>,
        routed: &RoutedPath<'_>,
    ) -> RouteMatch {
        let by_pattern = routed
            .pattern
            .map(|pattern| self.at_pattern(table, pattern));
        let by_pattern = by_pattern.unwrap_or_default();
        let is_endpoint =
            |target: &Option<RouteTarget>| matches!(target, Some(RouteTarget::Endpoint(_)));
        let target = entry.and_then(|entry| entry.target);
        let as_written = || Reached {
            targets: target.into_iter().collect(),
            // If the handler has a rule, it does not matter that the path has none.
            is_unmatched: target.is_none() && !by_pattern.iter().any(is_endpoint),
        };
        let is_plain = is_plain(routed.path)
            && entry.is_none_or(|entry| entry.wildcard.is_none())
            && !table.tree.has_trailing_slash();
        let is_decided = table.is_decided(routed);
        let is_exemption = |target: &RouteTarget| matches!(target, RouteTarget::Exempt(_));
        let mut known = target.iter().chain(by_pattern.iter().flatten());
        // An exemption needs every reading, also if the handler is known: it may serve a path that
        // has a rule of its own, in another spelling.
        let is_exempt = known.any(is_exemption);
        let has_one_reading = is_plain || is_decided && !is_exempt;
        let mut reached = if has_one_reading && routed.changed.is_none() {
            as_written()
        } else {
            match table.walk(routed) {
                // The handler is known, so that readings without a rule do not matter.
                Ok(reached) if routed.changed.is_none() && is_decided => Reached {
                    is_unmatched: false,
                    ..reached
                },
                Ok(reached) => reached,
                Err(_) if is_decided => as_written(),
                Err(rejection) => return RouteMatch::Rejected(rejection),
            }
        };
        for target in by_pattern.into_iter().flatten() {
            if !reached.targets.contains(&target) {
                reached.targets.push(target);
            }
        }
        reached.into()
    }

    fn path_of(&self, entry: PatternEntry) -> Option<&str> {
        entry.route.map(|index| &*self.registered[index].route.path)
    }

    /// Returns the targets of a matched pattern.
    ///
    /// axum matches the first path of a mount with and without a slash at its end, and the rule can
    /// name either. So a pattern without a slash is looked up with one if it is no route, and a
    /// pattern with a slash also without.
    fn at_pattern(&self, table: &RouteTable, pattern: &str) -> [Option<RouteTarget>; 4] {
        let own = self.at(table, pattern);
        let is_known = own.iter().any(Option::is_some);
        let other = match without_slash(pattern) {
            Some(shorter) => self.at(table, shorter),
            None if is_known || pattern == "/" || takes_rest(pattern) => [None; 2],
            None if !table.tree.has_trailing_slash() => [None; 2],
            None => self.at(table, &format!("{pattern}/")),
        };
        [own[0], own[1], other[0], other[1]]
    }

    /// Returns the targets of the route that covers every path of `pattern`, and of the wildcard
    /// that begins there. A pattern matches as a path: its parameters are segments like any other.
    fn at(&self, table: &RouteTable, pattern: &str) -> [Option<RouteTarget>; 2] {
        let path = unescaped(pattern);
        let Ok(found) = table.matcher.at(&path) else {
            return [None; 2];
        };
        let entry = *found.value;
        let covers = !takes_rest(pattern) || self.path_of(entry).is_some_and(takes_rest);
        [entry.target.filter(|_| covers), entry.wildcard]
    }
}

/// Returns a pattern as the path that it matches, with escaped braces unescaped.
fn unescaped(pattern: &str) -> Cow<'_, str> {
    if pattern.contains("{{") || pattern.contains("}}") {
        Cow::Owned(pattern.replace("{{", "{").replace("}}", "}"))
    } else {
        Cow::Borrowed(pattern)
    }
}

/// Returns a pattern without the slash at its end. `None` if there is none, or if it is `/`.
fn without_slash(pattern: &str) -> Option<&str> {
    let shorter = pattern.strip_suffix('/');
    shorter.filter(|shorter| !shorter.is_empty())
}

/// Returns whether two patterns differ in the names of their parameters at most.
fn is_same_shape(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let mut others = other.split('/');
    let mut is_same = |segment: &str| {
        let other = others.next();
        other.is_some_and(|other| segment == other || same_parameter(segment, other))
    };
    one.split('/').all(&mut is_same) && others.next().is_none()
}

/// Returns whether both segments are a parameter after the same text. False if a segment has escaped
/// braces: patterns that have them take the general path.
fn same_parameter(one: &str, other: &str) -> bool {
    let parameter = |segment| {
        let (prefix, name) = str::split_once(segment, '{')?;
        let name = name.strip_suffix('}')?;
        (!name.contains(['{', '}', '*'])).then_some(prefix)
    };
    parameter(one).is_some_and(|prefix| !prefix.contains('}') && parameter(other) == Some(prefix))
}

fn takes_rest(pattern: &str) -> bool {
    pattern.contains("{*")
}
