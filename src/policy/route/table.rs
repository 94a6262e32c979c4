//! All routes of a policy, ready to be asked on every request.

use std::collections::HashMap;

use http::Method;

use super::Route;
use super::spelling::{each_meaning, each_other_spelling, is_plain};

/// All routes of a policy, each with the number of what it leads to.
///
/// One matcher per method, so that a route of another method never hides a less specific one
/// of this.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    pub(super) by_method: Vec<(Method, Matcher)>,
    pub(super) any: Matcher,
    pub(super) places: Vec<Place>,
    /// Where routes that take the rest begin: a router that mounts something there also serves
    /// the place itself.
    pub(super) roots: HashMap<Box<str>, Vec<usize>>,
    /// Whether a route ends with a slash, which a layer further in may put there.
    pub(super) has_slashes_at_the_end: bool,
}

#[derive(Debug)]
pub(super) struct Place {
    pub(super) route: Route,
    pub(super) specificity: Vec<u8>,
    pub(super) target: Target,
}

/// What a route leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The number of an endpoint.
    Endpoint(usize),
    /// Nothing is counted.
    Exempt,
}

/// What is known of the way that a request took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken<'a> {
    /// The whole path, as the first router saw it.
    pub(crate) path: &'a str,
    /// The pattern that a router says it matched.
    pub(crate) pattern: Option<&'a str>,
    /// The path as it is now, if it was changed since.
    pub(crate) changed: Option<&'a str>,
}

/// Paths to places.
pub(super) type Matcher = matchit::Router<Spot>;

/// The number of a place, and what most want to know of it: it saves the way there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) place: usize,
    pub(super) target: Target,
    /// Whether a parameter of it takes a path where another route begins to take the rest.
    pub(super) hides_root: bool,
}

impl Routes {
    pub(crate) const fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What a request leads to: by its path, and by the pattern that a router says it took.
    ///
    /// Mostly the two agree. Where they do not, the most specific one counts: the path may have
    /// been rewritten between routers, a rule may be for a part of what one handler serves, and
    /// a path may be spelled in a way that somebody further in takes for another.
    #[inline]
    pub(crate) fn find(&self, method: &Method, taken: &Taken<'_>) -> Option<Target> {
        self.look_up(method, taken, |spot| spot.target, |place| place.target)
    }

    /// The route that leads there, as it was written.
    pub(in crate::policy) fn route(&self, method: &Method, taken: &Taken<'_>) -> Option<&Route> {
        let at_spot = |spot: &Spot| &self.places[spot.place].route;
        self.look_up(method, taken, at_spot, |place| &place.route)
    }

    /// Says something of where a request leads: mostly by its spot alone.
    #[inline]
    fn look_up<'r, T>(
        &'r self,
        method: &Method,
        taken: &Taken<'_>,
        at_spot: impl FnOnce(&Spot) -> T,
        at_place: impl FnOnce(&'r Place) -> T,
    ) -> Option<T> {
        if self.places.is_empty() {
            return None;
        }
        let own = self.by_method.iter().find(|(known, _)| known == method);
        let matcher = own.map_or(&self.any, |(_, matcher)| matcher);
        let by_path = matcher.at(taken.path).ok().map(|found| found.value);
        let place = |spot: &Spot| &self.places[spot.place];
        let agreed = match (by_path, taken.pattern) {
            (Some(spot), Some(pattern)) => place(spot).route.path == pattern,
            (by_path, pattern) => by_path.is_some_and(|spot| !spot.hides_root) && pattern.is_none(),
        };
        if agreed && taken.changed.is_none() && is_plain(taken.path) {
            return by_path.map(at_spot);
        }
        self.find_other(method, matcher, by_path.map(place), taken)
            .map(at_place)
    }

    #[cold]
    fn find_other<'r>(
        &'r self,
        method: &Method,
        matcher: &Matcher,
        by_path: Option<&'r Place>,
        taken: &Taken<'_>,
    ) -> Option<&'r Place> {
        let by_pattern = taken
            .pattern
            .and_then(|pattern| self.covering(matcher, pattern));
        let by_change = taken.changed.and_then(|path| self.at(matcher, path));
        // Nobody is exempt by an odd spelling.
        let counts = |place: &&Place| place.target != Target::Exempt;
        let mut found = by_path;
        consider(&mut found, by_pattern);
        consider(&mut found, by_change);
        // Where the router says what it matched, slashes do not matter any more.
        if taken.pattern.is_none() {
            each_other_spelling(taken.path, |spelling| {
                let place = self.at(matcher, spelling).filter(counts);
                consider(&mut found, place);
            });
        }
        // What is mounted there is served before what a parameter takes, unless the router has said
        // that it was that.
        let is_written_out = |place: &Place| !place.route.path.contains('{');
        let says_parameter = taken.pattern.is_some_and(|pattern| pattern.contains('{'));
        if found.is_none_or(|place| !is_written_out(place) && !says_parameter) {
            consider(&mut found, self.at_root(method, taken.path));
        }
        // Only where nothing else is known: a router matches paths as they are written, and its
        // handler for `{id}` has a rule of its own.
        let is_odd = !is_plain(taken.path) || taken.path.contains("/.");
        if found.is_none() && (is_odd || self.has_slashes_at_the_end) {
            each_meaning(taken.path, |meaning| {
                let place = self.at(matcher, meaning).filter(counts);
                consider(&mut found, place);
                if place.is_none() {
                    consider(&mut found, self.at_root(method, meaning));
                }
            });
        }
        found
    }

    fn at(&self, matcher: &Matcher, path: &str) -> Option<&Place> {
        matcher
            .at(path)
            .ok()
            .map(|found| &self.places[found.value.place])
    }

    /// The place whose route covers every path of `pattern`. A pattern matches as a path: its
    /// parameters are segments like any other.
    fn covering(&self, matcher: &Matcher, pattern: &str) -> Option<&Place> {
        let place = self.at(matcher, pattern)?;
        let takes_rest = |path: &str| path.contains("{*");
        (!takes_rest(pattern) || takes_rest(&place.route.path)).then_some(place)
    }

    /// The place that takes the rest of this path, of which nothing is left: that of its method
    /// before one for all, wherever they were written.
    fn at_root(&self, method: &Method, path: &str) -> Option<&Place> {
        let places = self.roots.get(path.trim_end_matches('/'))?;
        let rank = |place: &Place| match &place.route.method {
            Some(own) if own == method => Some(0),
            Some(get) if get == Method::GET && method == Method::HEAD => Some(1),
            Some(_) => None,
            None => Some(2),
        };
        let places = places.iter().map(|index| &self.places[*index]);
        let fitting = places.filter_map(|place| Some((rank(place)?, place)));
        let first = fitting.min_by_key(|(rank, _)| *rank);
        first.map(|(_, place)| place)
    }
}

/// Takes the other one if it is more specific.
fn consider<'r>(found: &mut Option<&'r Place>, other: Option<&'r Place>) {
    if let Some(other) = other
        && found.is_none_or(|place| other.specificity > place.specificity)
    {
        *found = Some(other);
    }
}
