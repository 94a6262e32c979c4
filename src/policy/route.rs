//! Routes: `GET /v1/items/{id}`, and which of them a request took.

use std::collections::HashMap;

use http::Method;

use crate::error::Invalid;

/// A route as it is written: a method, or any, and a path pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) method: Option<Method>,
    pub(crate) path: String,
}

impl Route {
    /// Reads `GET /v1/items/{id}`, or without a method for all of them.
    pub(crate) fn parse(text: &str) -> Result<Self, Invalid> {
        let refuse = |expected: &str| Invalid::new("route", text, expected.to_owned());
        let (method, path) = match text.trim().split_once(char::is_whitespace) {
            Some((method, path)) => (Some(method), path.trim_start()),
            None => (None, text.trim()),
        };
        let method = match method {
            None | Some("*" | "ANY") => None,
            Some(name) if name.bytes().all(|byte| byte.is_ascii_uppercase()) => Some(
                Method::from_bytes(name.as_bytes())
                    .map_err(|_| refuse("a method such as `GET` before the path"))?,
            ),
            Some(_) => return Err(refuse("a method in capitals, such as `GET /v1/items/{id}`")),
        };
        if !path.starts_with('/') {
            return Err(refuse(
                "a path that begins with `/`, such as `GET /v1/items/{id}`",
            ));
        }
        if path.contains(|c: char| c.is_whitespace() || c == '?' || c == '#') {
            return Err(refuse("a path without spaces, query or fragment"));
        }
        if let Some(old) = path.split('/').find(|segment| segment.starts_with(':')) {
            let name = &old[1..];
            return Err(refuse(&format!("`{{{name}}}` instead of `{old}`")));
        }
        Ok(Self {
            method,
            path: path.to_owned(),
        })
    }

    /// The name of a rule that has no other: `GET/v1/items/{id}`.
    pub(crate) fn name(&self) -> String {
        let method = self.method.as_ref().map_or("", Method::as_str);
        format!("{method}{}", self.path)
    }

    /// What is the same for routes that match the same paths, however their parameters are
    /// called.
    fn shape(&self) -> String {
        let segments =
            self.path
                .split('/')
                .map(|segment| match (segment.find('{'), segment.rfind('}')) {
                    (Some(from), Some(to)) if from < to && !segment.contains("{{") => {
                        let star = if segment[from..].starts_with("{*") {
                            "*"
                        } else {
                            ""
                        };
                        format!("{}{{{star}}}{}", &segment[..from], &segment[to + 1..])
                    }
                    _ => segment.to_owned(),
                });
        segments.collect::<Vec<_>>().join("/")
    }

    /// Where it begins, if it takes the rest of a path that is written out.
    fn root(&self) -> Option<&str> {
        let (root, _) = self.path.split_once("/{*")?;
        (!root.is_empty() && !root.contains('{')).then_some(root)
    }

    /// How specific each segment is: what is written out before what is a parameter before what
    /// takes the rest.
    fn specificity(&self) -> Vec<u8> {
        let of_segment = |segment: &str| match segment {
            rest if rest.contains("{*") => 1,
            parameter if parameter.contains('{') => 2,
            _ => 3,
        };
        self.path.split('/').map(of_segment).collect()
    }
}

impl std::fmt::Display for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.method {
            Some(method) => write!(f, "{method} {}", self.path),
            None => f.write_str(&self.path),
        }
    }
}

/// All routes of a policy, each with the number of what it leads to.
///
/// One matcher per method, so that a route of another method never hides a less specific one
/// of this.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    by_method: Vec<(Method, Matcher)>,
    any: Matcher,
    places: Vec<Place>,
    /// Where routes that take the rest begin: a router that mounts something there also serves
    /// the place itself.
    roots: HashMap<Box<str>, Vec<usize>>,
}

#[derive(Debug)]
struct Place {
    route: Route,
    specificity: Vec<u8>,
    target: Target,
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
type Matcher = matchit::Router<Spot>;

/// The number of a place, and what most want to know of it: it saves the way there.
#[derive(Clone, Copy, Debug)]
struct Spot {
    place: usize,
    target: Target,
}

impl Routes {
    /// Routes with their targets. Refuses two that match the same requests, naming both.
    ///
    /// Each comes with its path in a policy file.
    pub(crate) fn compile(routes: Vec<(Route, Target, String)>) -> Result<Self, Vec<Invalid>> {
        let mut problems = Vec::new();
        let mut known: HashMap<(Option<Method>, String), usize> = HashMap::new();
        let mut compiled = Self::default();
        let mut paths = Vec::with_capacity(routes.len());
        for (route, target, path) in routes {
            let shape = (route.method.clone(), route.shape());
            if let Some(twin) = known.get(&shape) {
                let (twin, other): (_, &String) = (&compiled.places[*twin].route, &paths[*twin]);
                let expected =
                    format!("another route than `{twin}`, which matches the same requests");
                let problem = Invalid::new("route", &route, expected);
                problems.push(problem.at(path).because_of(other.as_str()));
                continue;
            }
            if let (Target::Endpoint(_), Some(root)) = (target, route.root()) {
                let of_root = compiled.roots.entry(root.into()).or_default();
                of_root.push(compiled.places.len());
            }
            known.insert(shape, compiled.places.len());
            paths.push(path);
            compiled.places.push(Place {
                specificity: route.specificity(),
                route,
                target,
            });
        }
        let mut methods: Vec<Method> = Vec::new();
        for place in &compiled.places {
            if let Some(method) = &place.route.method
                && !methods.contains(method)
            {
                methods.push(method.clone());
            }
        }
        // HEAD runs the handlers of GET, so it follows their rules.
        if methods.contains(&Method::GET) && !methods.contains(&Method::HEAD) {
            methods.push(Method::HEAD);
        }
        let places = &compiled.places;
        let mut problem = |problem: Ambiguous| problems.push(problem.told(places, &paths));
        compiled.any = matcher(places, &[None], &mut problem);
        for method in methods {
            let get = (method == Method::HEAD).then_some(Some(Method::GET));
            let ranked: Vec<_> = [Some(Some(method.clone())), get, Some(None)]
                .into_iter()
                .flatten()
                .collect();
            let matcher = matcher(places, &ranked, &mut problem);
            compiled.by_method.push((method, matcher));
        }
        if problems.is_empty() {
            Ok(compiled)
        } else {
            problems.dedup();
            Err(problems)
        }
    }

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
    pub(super) fn route(&self, method: &Method, taken: &Taken<'_>) -> Option<&Route> {
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
            (by_path, pattern) => by_path.is_some() && pattern.is_none(),
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
        // Where the router says what it matched, slashes do not matter any more.
        let by_trimmed = (taken.pattern.is_none())
            .then(|| self.at(matcher, trimmed(taken.path)?))
            .flatten()
            .filter(counts);
        let mut found = by_path;
        for other in [by_pattern, by_change, by_trimmed] {
            let Some(other) = other else {
                continue;
            };
            if found.is_none_or(|place| other.specificity > place.specificity) {
                found = Some(other);
            }
        }
        // Only where nothing else is known: a router matches paths as they are written, and its
        // handler for `{id}` has a rule of its own.
        let by_decoded = || {
            let path = decoded(taken.path)?;
            self.at(matcher, &path).filter(counts)
        };
        found
            .or_else(|| self.at_root(method, taken.path))
            .or_else(by_decoded)
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

/// Whether nobody could take the path for another one.
#[inline]
fn is_plain(path: &str) -> bool {
    trimmed(path).is_none() && !path.contains('%')
}

/// The path without slashes too many at its ends, which a layer further in may take off before
/// it routes; `None` if it has none.
#[inline]
fn trimmed(path: &str) -> Option<&str> {
    if path == "/" || !(path.ends_with('/') || path.starts_with("//")) {
        return None;
    }
    let path = path.trim_end_matches('/');
    let extra = path.bytes().take_while(|byte| *byte == b'/').count();
    let path = &path[extra.saturating_sub(1)..];
    Some(if path.is_empty() { "/" } else { path })
}

/// The path with its segments decoded, as handlers see them, if it is encoded at all.
fn decoded(path: &str) -> Option<String> {
    if !path.contains('%') {
        return None;
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |digit: &u8| char::from(*digit).to_digit(16);
        let octet = match (first, tail) {
            (b'%', [high, low, ..]) => hex(high).zip(hex(low)),
            _ => None,
        };
        match octet.and_then(|(high, low)| u8::try_from(high << 4 | low).ok()) {
            // A slash that is encoded separates nothing.
            Some(octet) if octet != b'/' => {
                bytes.push(octet);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// A matcher of the places whose method is among `ranked`; of places of the same shape, the one
/// whose method comes first.
fn matcher(
    places: &[Place],
    ranked: &[Option<Method>],
    problem: &mut impl FnMut(Ambiguous),
) -> Matcher {
    let mut matcher = Matcher::new();
    let mut taken: HashMap<String, usize> = HashMap::new();
    for method in ranked {
        let of_method = places
            .iter()
            .enumerate()
            .filter(|(_, place)| place.route.method == *method);
        for (index, place) in of_method {
            if taken.contains_key(&place.route.shape()) {
                continue;
            }
            let spot = Spot {
                place: index,
                target: place.target,
            };
            match matcher.insert(place.route.path.clone(), spot) {
                Ok(()) => {
                    taken.insert(place.route.shape(), index);
                }
                Err(error) => problem(Ambiguous { index, error }),
            }
        }
    }
    matcher
}

/// A route that a matcher does not take.
struct Ambiguous {
    index: usize,
    error: matchit::InsertError,
}

impl Ambiguous {
    fn told(self, places: &[Place], paths: &[String]) -> Invalid {
        let Self { index, error } = self;
        let route = &places[index].route;
        let matchit::InsertError::Conflict { with } = error else {
            let expected = format!("parameters such as `{{id}}` or `{{*rest}}` ({error})");
            return Invalid::new("route", route, expected).at(&*paths[index]);
        };
        // What it conflicts with is told by the path alone.
        let other = places.iter().position(|place| place.route.path == with);
        let named = other.map_or(with, |other| places[other].route.to_string());
        let expected = format!("a route that is not ambiguous with `{named}`");
        let problem = Invalid::new("route", route, expected).at(&*paths[index]);
        match other {
            Some(other) => problem.because_of(&*paths[other]),
            None => problem,
        }
    }
}
