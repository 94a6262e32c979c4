//! Compiles routes into one table per method, and reports their errors.

use std::collections::{HashMap, HashSet};

use http::Method;

use super::Route;
use super::segment::{self, Segment};
use super::table::{PatternEntry, RegisteredRoute, RouteMatch, RouteTable, RouteTarget, Routes};
use super::walk;
use crate::error::ValidationError;

impl Routes {
    /// Compiles routes with their targets. Rejects two routes that match the same requests, and
    /// names both. Each route comes with its path in a policy file.
    pub(crate) fn compile(
        routes: Vec<(Route, RouteTarget, String)>,
    ) -> Result<Self, Vec<ValidationError>> {
        let mut problems = Vec::new();
        let mut known: HashMap<(Option<Method>, Box<[Segment]>), usize> = HashMap::new();
        let mut registered: Vec<RegisteredRoute> = Vec::new();
        let mut paths = Vec::with_capacity(routes.len());
        for (route, target, path) in routes {
            let shape = (route.method.clone(), route.segments.clone());
            if let Some(twin) = known.get(&shape) {
                let (twin, other): (_, &String) = (&registered[*twin].route, &paths[*twin]);
                let expected =
                    format!("another route than `{twin}`, which matches the same requests");
                let problem = ValidationError::new("route", &route, expected);
                problems.push(problem.at(path).because_of(other.as_str()));
                continue;
            }
            known.insert(shape, registered.len());
            paths.push(path);
            registered.push(RegisteredRoute { route, target });
        }
        let mut methods: Vec<Method> = Vec::new();
        for RegisteredRoute { route, .. } in &registered {
            if let Some(method) = &route.method
                && !methods.contains(method)
            {
                methods.push(method.clone());
            }
        }
        // HEAD runs the handlers of GET, so it follows their rules.
        if methods.contains(&Method::GET) && !methods.contains(&Method::HEAD) {
            methods.push(Method::HEAD);
        }
        let mut problem =
            |problem: Ambiguous| problems.push(problem.into_invalid(&registered, &paths));
        let any = table(&registered, &[None], &mut problem);
        let mut by_method = Vec::with_capacity(methods.len());
        for method in methods {
            let get = (method == Method::HEAD).then_some(Some(Method::GET));
            let ranked: Vec<_> = [Some(Some(method.clone())), get, Some(None)]
                .into_iter()
                .flatten()
                .collect();
            let table = table(&registered, &ranked, &mut problem);
            by_method.push((method, table));
        }
        if problems.is_empty() {
            Ok(Self {
                by_method,
                any,
                registered,
            })
        } else {
            problems.dedup();
            Err(problems)
        }
    }

    /// Returns, for each route whose plain paths can have several readings and in each table, what
    /// such a path reaches. These are paths that end where a wildcard begins, and all plain paths if a route of
    /// the table ends in `/`, because middleware may append a slash.
    pub(in crate::policy) fn at_plain_paths(
        &self,
    ) -> impl Iterator<Item = (&Route, RouteTarget, RouteMatch)> {
        let tables = self.by_method.iter().map(|(_, table)| table);
        let tables = tables.chain([&self.any]);
        tables.flat_map(move |table| {
            self.registered.iter().filter_map(move |known| {
                let segments = match &*known.route.segments {
                    [root @ .., Segment::Wildcard] => root,
                    _ if !table.tree.has_trailing_slash() => return None,
                    [shorter @ .., Segment::Literal(last)] if last.is_empty() => shorter,
                    all => all,
                };
                let sample = Route::sample(segments);
                let sample = if sample.is_empty() { "/" } else { &sample };
                let reached = walk::walk(&table.tree, sample).ok()?;
                Some((&known.route, known.target, reached.into()))
            })
        })
    }
}

/// Compiles the routes whose method is among `ranked`. Of routes of the same shape, the one whose
/// method comes first applies.
fn table(
    registered: &[RegisteredRoute],
    ranked: &[Option<Method>],
    problem: &mut impl FnMut(Ambiguous),
) -> RouteTable {
    let mut table = RouteTable::default();
    let mut known: HashSet<&[Segment]> = HashSet::new();
    let mut chosen: Vec<usize> = Vec::new();
    for method in ranked {
        for (index, RegisteredRoute { route, .. }) in registered.iter().enumerate() {
            if route.method == *method && known.insert(&route.segments) {
                chosen.push(index);
            }
        }
    }
    // Where wildcards begin: mounts also serve that path, which no wildcard route matches.
    let roots = chosen.iter().filter_map(|index| {
        let RegisteredRoute { route, target } = &registered[*index];
        let root = route.wildcard_root()?;
        Some((segment::parse(root).ok()?, (root, *target)))
    });
    let mut roots: HashMap<Box<[Segment]>, (&str, RouteTarget)> = roots.collect();
    for index in chosen {
        let RegisteredRoute { route, target } = &registered[index];
        let entry = PatternEntry {
            route: Some(index),
            target: Some(*target),
            wildcard: roots.remove(&route.segments).map(|(_, target)| target),
        };
        match table.matcher.insert(route.path.clone(), entry) {
            Ok(()) => table.tree.insert(&route.segments, *target),
            Err(error) => problem(Ambiguous { index, error }),
        }
    }
    for (root, wildcard) in roots.into_values() {
        let entry = PatternEntry {
            route: None,
            target: None,
            wildcard: Some(wildcard),
        };
        // Fails only beside a route that has been reported above.
        let _ = table.matcher.insert(root, entry);
    }
    table
}

/// A route that the matcher rejects.
struct Ambiguous {
    index: usize,
    error: matchit::InsertError,
}

impl Ambiguous {
    fn into_invalid(self, registered: &[RegisteredRoute], paths: &[String]) -> ValidationError {
        let Self { index, error } = self;
        let route = &registered[index].route;
        let matchit::InsertError::Conflict { with } = error else {
            let expected = format!("parameters such as `{{id}}` or `{{*rest}}` ({error})");
            return ValidationError::new("route", route, expected).at(&*paths[index]);
        };
        // The matcher names the other route by its path alone.
        let other = registered.iter().position(|known| known.route.path == with);
        let named = other.map_or(with, |other| registered[other].route.to_string());
        let expected = format!("a route that is not ambiguous with `{named}`");
        let problem = ValidationError::new("route", route, expected).at(&*paths[index]);
        match other {
            Some(other) => problem.because_of(&*paths[other]),
            None => problem,
        }
    }
}
