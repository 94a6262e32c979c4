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
}

#[derive(Debug)]
struct Place {
    route: Route,
    specificity: Vec<u8>,
    target: usize,
}

/// Paths to places.
type Matcher = matchit::Router<usize>;

impl Routes {
    /// Routes with their targets. Refuses two that match the same requests, naming both.
    pub(crate) fn compile(routes: Vec<(Route, usize)>) -> Result<Self, Vec<Invalid>> {
        let mut problems = Vec::new();
        let mut known: HashMap<(Option<Method>, String), usize> = HashMap::new();
        let mut compiled = Self::default();
        for (route, target) in routes {
            let shape = (route.method.clone(), route.shape());
            if let Some(twin) = known.get(&shape) {
                let twin = &compiled.places[*twin].route;
                let expected =
                    format!("another route than `{twin}`, which matches the same requests");
                problems.push(Invalid::new("route", &route, expected));
                continue;
            }
            known.insert(shape, compiled.places.len());
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
        compiled.any = matcher(places, &[None], &mut problems);
        for method in methods {
            let get = (method == Method::HEAD).then_some(Some(Method::GET));
            let ranked: Vec<_> = [Some(Some(method.clone())), get, Some(None)]
                .into_iter()
                .flatten()
                .collect();
            let matcher = matcher(places, &ranked, &mut problems);
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
    /// Mostly the two agree. Where the path was rewritten between the routers, or where a rule
    /// is written for a part of what one handler serves, the more specific one counts.
    #[inline]
    pub(crate) fn find(&self, method: &Method, path: &str, pattern: Option<&str>) -> Option<usize> {
        if self.places.is_empty() {
            return None;
        }
        let own = self.by_method.iter().find(|(known, _)| known == method);
        let matcher = own.map_or(&self.any, |(_, matcher)| matcher);
        let by_path = at(matcher, path).map(|index| &self.places[index]);
        let Some(pattern) = pattern else {
            return by_path.map(|place| place.target);
        };
        if let Some(place) = by_path.filter(|place| place.route.path == pattern) {
            return Some(place.target);
        }
        let by_pattern = self.covering(matcher, pattern);
        let best = match (by_path, by_pattern) {
            (Some(one), Some(other)) if other.specificity > one.specificity => other,
            (Some(one), _) => one,
            (None, other) => other?,
        };
        Some(best.target)
    }

    /// The place whose route covers every path of `pattern`. A pattern matches as a path: its
    /// parameters are segments like any other.
    fn covering(&self, matcher: &Matcher, pattern: &str) -> Option<&Place> {
        let place = matcher
            .at(pattern)
            .ok()
            .map(|found| &self.places[*found.value])?;
        let takes_rest = |path: &str| path.contains("{*");
        (!takes_rest(pattern) || takes_rest(&place.route.path)).then_some(place)
    }
}

/// The place for a path; slashes too many at its ends are no way around a rule, since a layer
/// further in may take them off before it routes.
#[inline]
fn at(matcher: &Matcher, path: &str) -> Option<usize> {
    if let Ok(found) = matcher.at(path) {
        return Some(*found.value);
    }
    if !path.starts_with("//") && !path.ends_with('/') {
        return None;
    }
    let trimmed = path.trim_end_matches('/');
    let extra = trimmed.bytes().take_while(|byte| *byte == b'/').count();
    let trimmed = &trimmed[extra.saturating_sub(1)..];
    let trimmed = if trimmed.is_empty() { "/" } else { trimmed };
    matcher.at(trimmed).ok().map(|found| *found.value)
}

/// A matcher of the places whose method is among `ranked`; of places of the same shape, the one
/// whose method comes first.
fn matcher(places: &[Place], ranked: &[Option<Method>], problems: &mut Vec<Invalid>) -> Matcher {
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
            match matcher.insert(place.route.path.clone(), index) {
                Ok(()) => {
                    taken.insert(place.route.shape(), index);
                }
                Err(matchit::InsertError::Conflict { with }) => {
                    let expected = format!("a route that is not ambiguous with `{with}`");
                    problems.push(Invalid::new("route", &place.route, expected));
                }
                Err(error) => {
                    let expected = format!("parameters such as `{{id}}` or `{{*rest}}` ({error})");
                    problems.push(Invalid::new("route", &place.route, expected));
                }
            }
        }
    }
    matcher
}
