//! Routes into matchers, or what is wrong with them.

use std::collections::HashMap;

use http::Method;

use super::Route;
use super::table::{Matcher, Place, Routes, Spot, Target};
use crate::error::Invalid;

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
            compiled.has_slashes_at_the_end |= route.path.len() > 1 && route.path.ends_with('/');
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
        let mut with_roots = |ranked: &[Option<Method>]| {
            let mut matcher = matcher(places, ranked, &mut problem);
            for root in compiled.roots.keys() {
                if let Ok(found) = matcher.at_mut(root) {
                    let place = &places[found.value.place];
                    found.value.hides_root = place.route.path.contains('{');
                }
            }
            matcher
        };
        compiled.any = with_roots(&[None]);
        for method in methods {
            let get = (method == Method::HEAD).then_some(Some(Method::GET));
            let ranked: Vec<_> = [Some(Some(method.clone())), get, Some(None)]
                .into_iter()
                .flatten()
                .collect();
            let matcher = with_roots(&ranked);
            compiled.by_method.push((method, matcher));
        }
        if problems.is_empty() {
            Ok(compiled)
        } else {
            problems.dedup();
            Err(problems)
        }
    }
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
                hides_root: false,
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
