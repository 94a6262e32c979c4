use std::collections::BTreeSet;

use super::*;
use crate::policy::route::path::MAX_PATH_BYTES;
use crate::policy::route::segment::parse;

fn tree(routes: &[&str]) -> Tree {
    let mut tree = Tree::default();
    for (index, route) in routes.iter().enumerate() {
        tree.insert(&parse(route).unwrap(), RouteTarget::Endpoint(index));
    }
    tree
}

/// Returns the routes that a path reaches, in their order, and whether some reading reaches none.
fn reached<'r>(routes: &[&'r str], path: &str) -> (Vec<&'r str>, bool) {
    let reached = walk(&tree(routes), path).unwrap();
    let mut found: Vec<usize> = Vec::new();
    for target in reached.targets {
        match target {
            RouteTarget::Endpoint(index) => found.push(index),
            RouteTarget::Exempt(_) => unreachable!("no route is exempt here"),
        }
    }
    found.sort_unstable();
    let found = found.into_iter().map(|index| routes[index]).collect();
    (found, reached.is_unmatched)
}

#[test]
fn every_reading_adds_its_route() {
    let routes = [
        "/",
        "/a/b",
        "/a/{id}",
        "/u_{name}",
        "/f/{*rest}",
        "/f/x/y",
        "/m/{t}/n/{*rest}",
    ];
    for (path, expected, is_unmatched) in [
        ("/", &["/"][..], false),
        ("//", &["/"], true),
        ("/a/b", &["/a/b"], false),
        ("/a/%62", &["/a/b", "/a/{id}"], false),
        ("/a%2Fb", &["/a/b"], true),
        ("/a//b", &["/a/b", "/a/{id}"], true),
        ("/a/b/", &["/a/b", "/a/{id}"], true),
        ("/u_x", &["/u_{name}"], false),
        ("/u_", &["/u_{name}"], true),
        ("/%75_x", &["/u_{name}"], true),
        ("/f/x%2Fy", &["/f/{*rest}", "/f/x/y"], false),
        ("/f", &["/f/{*rest}"], true),
        ("/f/", &["/f/{*rest}"], true),
        ("/f/a/", &["/f/{*rest}"], false),
        ("/m/1/n", &["/m/{t}/n/{*rest}"], true),
        ("/m//n/z", &["/m/{t}/n/{*rest}"], true),
        ("/zzz", &[], true),
        ("*", &[], true),
        ("a/b", &["/a/b"], true),
    ] {
        let (found, fails) = reached(&routes, path);
        assert_eq!((&*found, fails), (expected, is_unmatched), "{path}");
    }
}

#[test]
fn an_appended_slash_is_a_reading_if_a_route_ends_in_one() {
    let routes = [
        "/page/",
        "/page",
        "/a/{b}/",
        "/a/c",
        "/users/me",
        "/users/{id}",
    ];
    for (path, expected) in [
        ("/page", &["/page/", "/page"][..]),
        ("/page/", &["/page/", "/page"]),
        ("/a/c", &["/a/{b}/", "/a/c"]),
        ("/users/me", &["/users/me"]),
    ] {
        let (found, _) = reached(&routes, path);
        assert_eq!(found, expected, "{path}");
    }
    assert!(!reached(&routes, "/users/me").1);
}

#[test]
fn a_parameter_route_is_not_hidden_by_a_wildcard_that_begins_there() {
    let (found, _) = reached(&["/a/{x}", "/a/b/{*rest}"], "/a/b");
    assert_eq!(found, ["/a/{x}", "/a/b/{*rest}"]);
}

/// Without the bound on calls, the second path takes seconds.
#[test]
fn work_for_odd_paths_is_bounded() {
    let routes = [
        "/",
        "/a",
        "/{x}",
        "/{x}/{y}",
        "/{x}/{y}/{z}/{*rest}",
        "/a/{y}/{*rest}",
        "/aa_{x}/{y}/{z}/a",
    ];
    let tree = tree(&routes);
    for piece in ["%2F", "a%2F", "/", "//%2F", "a/", "%61%2F", "/a%2Fa"] {
        let path = format!("/{}", piece.repeat(MAX_PATH_BYTES / piece.len()));
        let path = &path[..MAX_PATH_BYTES.min(path.len())];
        let mut walk = Walk::new(&tree, path);
        walk.reach(Tree::ROOT, 0, false);
        // After the bound, each state that is open makes a few calls that return at once.
        let calls = walk.segment_calls;
        assert!(
            calls <= MAX_SEGMENT_CALLS + 4 * MAX_STATES,
            "{piece}: {calls}"
        );
        assert!(walk.memo.len() <= MAX_STATES, "{piece}");
    }
}

#[test]
fn too_many_readings_are_rejected_and_ordinary_encodings_are_not() {
    let tree = tree(&["/{bucket}/{key}", "/files/{*rest}"]);
    let many = format!("/b/{}", "a%2F".repeat(2_000));
    assert_eq!(walk(&tree, &many), Err(PathRejection::TooManyReadings));
    let key = format!("/b/{}", "a%2F".repeat(40));
    assert!(walk(&tree, &key).is_ok());
    let file = format!("/files/{}", "a%20b/".repeat(1_000));
    assert!(walk(&tree, &file).is_ok());
}

/// Returns all paths that a router may see instead of this one.
fn readings(path: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::from([String::new()]);
    let pieces: Vec<&str> = path[1..].split('/').collect();
    for piece in pieces {
        let mut next = BTreeSet::new();
        for (before, text) in paths.iter().flat_map(|before| {
            let texts = segments(piece);
            texts.into_iter().map(move |text| (before, text))
        }) {
            next.insert(format!("{before}{text}"));
        }
        paths = next;
    }
    let whole = |path: String| {
        if path.is_empty() {
            "/".to_owned()
        } else {
            path
        }
    };
    paths.into_iter().map(whole).collect()
}

/// Returns the readings of the piece between two slashes, with a slash in front: each `%2F` a
/// slash or not, each segment encoded or decoded, an empty one there or not.
fn segments(piece: &str) -> Vec<String> {
    let mut all = Vec::new();
    let parts: Vec<&str> = piece.split("%2F").collect();
    for cuts in 0..1_u32 << (parts.len() - 1) {
        let mut texts = vec![parts[0].to_owned()];
        for (index, part) in parts[1..].iter().enumerate() {
            if cuts >> index & 1 == 1 {
                texts.push((*part).to_owned());
            } else if let Some(last) = texts.last_mut() {
                last.push_str("%2F");
                last.push_str(part);
            }
        }
        let mut spelled = vec![String::new()];
        for text in texts {
            let decoded = decode(text.as_bytes(), usize::MAX);
            let decoded = String::from_utf8(decoded).unwrap();
            let mut options = vec![format!("/{text}")];
            // A decoded slash stays inside of its segment, where no route can have one.
            if !decoded.contains('/') {
                options.push(format!("/{decoded}"));
            }
            if text.is_empty() {
                options.push(String::new());
            }
            spelled = spelled
                .iter()
                .flat_map(|before| {
                    options
                        .iter()
                        .map(move |option| format!("{before}{option}"))
                })
                .collect();
        }
        all.extend(spelled);
    }
    all
}

/// Returns one to `max` of these pieces, each with a slash before it.
fn joined(random: &mut fastrand::Rng, pieces: &[&str], max: usize) -> String {
    let count = random.usize(1..=max);
    let pieces = (0..count).map(|_| *random.choice(pieces).unwrap());
    pieces.fold(String::new(), |path, piece| path + "/" + piece)
}

fn random_route(random: &mut fastrand::Rng) -> String {
    let path = joined(random, &["a", "b", "u_b", "{p}", "u_{q}"], 3);
    path + random.choice(["", "/{*rest}"]).unwrap()
}

fn random_path(random: &mut fastrand::Rng) -> String {
    let pieces = [
        "a", "b", "%61", "%62", "u_b", "u_", "%75_b", "x", "", "", "a%2Fb", "%2F", "%2Fa",
    ];
    joined(random, &pieces, 4)
}

/// The walk reaches every route that a router matches for any reading of a path, also if the router
/// does not match empty parameters, as `matchit` 0.8.6 does not.
#[test]
fn every_route_of_every_reading_is_reached() {
    for seed in 0..20_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let count = random.usize(1..6);
        let routes: Vec<_> = (0..count).map(|_| random_route(&mut random)).collect();
        check_readings(&routes, &random_path(&mut random));
    }
}

fn check_readings(routes: &[String], path: &str) {
    let (mut matcher, mut tree) = (matchit::Router::new(), Tree::default());
    let mut inserted = Vec::new();
    for (index, route) in routes.iter().enumerate() {
        if matcher.insert(route, index).is_ok() {
            tree.insert(&parse(route).unwrap(), RouteTarget::Endpoint(index));
            inserted.push((index, route.as_str()));
        }
    }
    let reached = walk(&tree, path).unwrap();
    for reading in readings(path) {
        let found = matcher.at(&reading).ok();
        match &found {
            Some(found) => assert!(
                reached
                    .targets
                    .contains(&RouteTarget::Endpoint(*found.value)),
                "{routes:?}: {path} as {reading}: {reached:?}"
            ),
            None => assert!(
                reached.is_unmatched,
                "{routes:?}: {path} as {reading}: {reached:?}"
            ),
        }
        let has_empty = |found: &matchit::Match<'_, '_, &usize>| {
            found.params.iter().any(|(_, value)| value.is_empty())
        };
        if found.as_ref().is_some_and(has_empty) {
            let index = without_empty(&inserted, &reading);
            assert!(
                index.is_none_or(|index| reached.targets.contains(&RouteTarget::Endpoint(index))),
                "{routes:?}: {path} as {reading} without empty parameters: {reached:?}"
            );
        }
    }
}

/// Returns the match of a router that does not match empty parameters: a wildcard, since all other
/// segments match the path literally.
fn without_empty(routes: &[(usize, &str)], reading: &str) -> Option<usize> {
    let segments: Vec<&str> = reading[1..].split('/').collect();
    let matches = |(_, route): &&(usize, &str)| {
        let patterns: Vec<&str> = route[1..].split('/').collect();
        let wildcard = patterns.last().is_some_and(|last| last.starts_with("{*"));
        let fixed = &patterns[..patterns.len() - usize::from(wildcard)];
        let rest = segments.get(fixed.len()..).unwrap_or_default().join("/");
        let fits = |(pattern, text): (&&str, &&str)| match pattern.split_once('{') {
            Some((prefix, _)) => text.len() > prefix.len() && text.starts_with(prefix),
            None => pattern == text,
        };
        segments.len() >= fixed.len()
            && fixed.iter().zip(&segments).all(fits)
            && if wildcard {
                !rest.is_empty()
            } else {
                segments.len() == fixed.len()
            }
    };
    // Only unambiguous cases: with several, precedence decides.
    let mut found = routes.iter().filter(matches);
    let first = found.next()?.0;
    found.next().is_none().then_some(first)
}
