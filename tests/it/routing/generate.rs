//! Generates routers that axum accepts.
//!
//! Some routers are left out, because axum behaves there in a way that no rule can describe. The
//! property does not cover them:
//!
//! - Mounts below a nested prefix such as `/u_{name}` or `/{{x}}`, and mounts with such a prefix. axum
//!   does not strip it, and the mounted router gets another path than its patterns have.
//! - Mounts in a nested router whose prefix begins with a parameter and has several segments. axum
//!   drops one of two slashes there, and the prefix stays.
//! - Mounts in a router behind `route_service`. axum fails a debug assertion.
//! - Fallbacks of routers that are nested at a parameter, and of merged routers. axum refuses to
//!   build them.
//! - Fallbacks of a router in a nested router that has none. axum drops them.
//! - The route `/` of a nested router behind `NormalizePath::append_trailing_slash`. Its pattern has no
//!   slash at the end, so no request reaches it. A rule for it would hide rules of other handlers.
//! - Middleware that rewrites paths in another way than `NormalizePath` does. Rules for the new path
//!   can be charged only by a layer behind it (`layer/routes_rewritten.rs`).
//!
//! Generated and excused: a handler that [`hides`](super::pattern::hides) another one from a layer
//! around the router. The security guide describes this limit.

use matchit::Router as Matcher;

use super::pattern::{Boundary, join, shape};
use super::policy;
use super::random::Random;
use super::segment::{is_literal_first, is_removed};
use super::tree::{App, Handler, Node, Position, Server, Slash, Tree};

pub(super) fn app(seed: u64) -> App {
    let mut random = Random::new(seed);
    let mut generator = Generator {
        random: &mut random,
        handlers: Vec::new(),
        boundaries: 0,
        parameters: 0,
        appends: false,
    };
    let server = if generator.random.chance(15) {
        generator.plain()
    } else {
        generator.axum()
    };
    let handlers = generator.handlers;
    let rules = policy::rules(&mut random, &handlers);
    App {
        server,
        handlers,
        rules,
    }
}

pub(super) struct Generator<'r> {
    pub(super) random: &'r mut Random,
    pub(super) handlers: Vec<Handler>,
    boundaries: usize,
    pub(super) parameters: usize,
    /// Whether all routes end in a slash, because `NormalizePath` appends one: others would be
    /// unreachable, and a rule for them would test nothing.
    pub(super) appends: bool,
}

/// The routes that axum keeps in one matcher: those of a router, and of all routers that are
/// nested in it or merged with it.
struct Scope {
    /// The full pattern of what was removed from the path before this router sees it.
    base: String,
    routes: Matcher<()>,
    fallbacks: Matcher<()>,
    behind: Vec<Boundary>,
    /// The boundary that all fallbacks lie behind.
    fallback: Boundary,
}

/// What may be generated at a place.
#[derive(Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a restriction of its own"
)]
struct Allowed {
    depth: usize,
    /// Whether this router is nested, directly or merged, in another one of its scope.
    is_nested: bool,
    /// Not below a nested prefix such as `/u_{name}` or `/{{x}}`: axum does not remove it from the
    /// path, so that a mounted router gets a path that its patterns do not match. Not in a router behind
    /// `route_service` either: axum fails an assertion of its own there.
    mounts: bool,
    /// Whether `/` is a route here. It is unreachable where only `/{*rest}` leads.
    root: bool,
    fallback: bool,
    /// Whether routers in this one may have a fallback. Not below a nested prefix that begins with
    /// a parameter: axum has a fallback for `/{*rest}` at each level, which conflicts with it. Not
    /// in a nested router that has none: axum drops it then.
    nested_fallbacks: bool,
    /// See [`Boundary::shifts`].
    shifts: bool,
}

impl Scope {
    fn new(base: String, behind: Vec<Boundary>, fallback: usize) -> Self {
        let mut fallbacks = Matcher::new();
        fallbacks.insert("/", ()).unwrap();
        fallbacks.insert("/{*rest}", ()).unwrap();
        Self {
            fallback: Boundary::new(fallback, &base),
            base,
            routes: Matcher::new(),
            fallbacks,
            behind,
        }
    }

    /// Adds all of these paths, or none of them if one conflicts.
    fn insert(&mut self, paths: &[String]) -> bool {
        insert(&mut self.routes, paths)
    }
}

fn insert(matcher: &mut Matcher<()>, paths: &[String]) -> bool {
    let mut longer = matcher.clone();
    let fits = paths.iter().all(|path| longer.insert(path, ()).is_ok());
    if fits {
        *matcher = longer;
    }
    fits
}

impl Generator<'_> {
    fn axum(&mut self) -> Server {
        let slash = self.slash();
        let position = match self.random.below(12) {
            0 | 1 => Position::Inside,
            2 => Position::OnRoutes,
            3 | 4 => Position::Outside,
            5 => Position::OutsideNormalized(slash),
            6 => Position::NormalizedOutside(slash),
            7 => Position::NormalizedInside(slash),
            8 => Position::BehindFallback,
            9 | 10 => Position::InMounts,
            _ => Position::AroundMounts,
        };
        self.appends = matches!(
            position,
            Position::OutsideNormalized(Slash::Append)
                | Position::NormalizedOutside(Slash::Append)
                | Position::NormalizedInside(Slash::Append)
        );
        let mut scope = self.scope(String::new(), Vec::new());
        let allowed = Allowed {
            depth: 0,
            is_nested: false,
            mounts: true,
            root: true,
            fallback: true,
            nested_fallbacks: true,
            shifts: false,
        };
        Server::Axum(position, self.tree(&mut scope, "", allowed))
    }

    fn slash(&mut self) -> Slash {
        self.random.pick(&[Slash::Trim, Slash::Trim, Slash::Append])
    }

    fn scope(&mut self, base: String, behind: Vec<Boundary>) -> Scope {
        self.boundaries += 1;
        Scope::new(base, behind, self.boundaries)
    }

    fn tree(&mut self, scope: &mut Scope, at: &str, mut allowed: Allowed) -> Tree {
        let mut tree = Tree::default();
        if allowed.fallback && self.random.chance(25) {
            let rest = join(at, "/{*rest}");
            let is_top = at.is_empty();
            if is_top || insert(&mut scope.fallbacks, &[join(at, "/"), rest.clone()]) {
                let mut behind = scope.behind.clone();
                behind.push(scope.fallback);
                tree.fallback = Some(self.handler(join(&scope.base, &rest), None, behind));
            }
        }
        if allowed.is_nested && tree.fallback.is_none() {
            allowed.nested_fallbacks = false;
        }
        let count = if allowed.depth == 0 { 4 } else { 1 } + self.random.below(4);
        for _ in 0..count {
            let node = self.node(scope, at, allowed);
            tree.nodes.extend(node);
        }
        tree
    }

    fn node(&mut self, scope: &mut Scope, at: &str, allowed: Allowed) -> Option<Node> {
        let inner = Allowed {
            depth: allowed.depth + 1,
            root: true,
            fallback: allowed.nested_fallbacks,
            ..allowed
        };
        // Where a slash is appended, the `/` of a nested router is unreachable.
        let may_be_root = allowed.root && (at.is_empty() || !self.appends);
        let is_deep = allowed.depth >= 3;
        let kind = self.random.below(if is_deep { 45 } else { 100 });
        match kind {
            0..36 => {
                let path = self.path(may_be_root);
                let full = join(at, &path);
                (self.is_reachable(&full) && scope.insert(std::slice::from_ref(&full))).then(|| {
                    let pattern = join(&scope.base, &full);
                    Node::Route(path, self.by_method(&pattern, &scope.behind))
                })
            }
            36..45 => {
                let path = self.path(may_be_root);
                let full = join(at, &path);
                (self.is_reachable(&full) && scope.insert(std::slice::from_ref(&full))).then(|| {
                    let pattern = join(&scope.base, &full);
                    Node::Service(path, self.handler(pattern, None, scope.behind.clone()))
                })
            }
            45..60 => {
                let path = self.prefix(false);
                let is_literal = is_literal_first(&path);
                let inner = Allowed {
                    shifts: allowed.shifts || (!at.is_empty() && !is_literal),
                    is_nested: true,
                    mounts: allowed.mounts && is_removed(&path),
                    fallback: inner.fallback && is_literal,
                    nested_fallbacks: inner.nested_fallbacks && is_literal,
                    ..inner
                };
                let tree = self.tree(scope, &join(at, &path), inner);
                Some(Node::Nest(path, tree))
            }
            60..66 => {
                let inner = Allowed {
                    fallback: false,
                    root: allowed.root,
                    // What is nested in a merged router is nested in this one.
                    is_nested: false,
                    ..inner
                };
                Some(Node::Merge(self.tree(scope, at, inner)))
            }
            _ if !allowed.mounts => None,
            66..90 => self.mount(scope, at, inner),
            _ => self.wrapped(scope, at, inner),
        }
    }

    fn mount(&mut self, scope: &mut Scope, at: &str, inner: Allowed) -> Option<Node> {
        let path = self.prefix(true);
        let full = join(at, &path);
        let mut paths = vec![join(&full, "/{*rest}"), full.clone()];
        if !full.ends_with('/') {
            paths.push(format!("{full}/"));
        }
        if !scope.insert(&paths) {
            return None;
        }
        let base = join(&scope.base, &full);
        let is_parameter_first = !is_literal_first(&path) && path[1..].contains('/');
        let shifts = inner.shifts || (!at.is_empty() && is_parameter_first);
        let behind = self.behind(scope, &base, shifts);
        if self.random.chance(35) {
            let handler = self.handler(join(&base, "/{*rest}"), None, behind);
            return Some(Node::MountHandler(path, handler));
        }
        let slash = self.random.chance(25).then(|| self.slash());
        let mut own = self.scope(base, behind);
        let inner = Allowed {
            is_nested: false,
            fallback: true,
            nested_fallbacks: true,
            shifts: false,
            ..inner
        };
        // A slash that was appended further out is still there.
        let appends = slash.map_or(self.appends, |slash| slash == Slash::Append);
        let outer = std::mem::replace(&mut self.appends, appends);
        let tree = self.tree(&mut own, "", inner);
        self.appends = outer;
        Some(Node::Mount(path, slash, tree))
    }

    fn wrapped(&mut self, scope: &mut Scope, at: &str, inner: Allowed) -> Option<Node> {
        let path = if self.random.chance(40) {
            String::new()
        } else {
            self.prefix(true).trim_end_matches('/').to_owned()
        };
        let rest = join(at, &format!("{path}/{{*rest}}"));
        if !scope.insert(&[rest]) {
            return None;
        }
        let base = join(&scope.base, at);
        let behind = self.behind(scope, &join(&base, &path), inner.shifts);
        let mut own = self.scope(base, behind);
        let inner = Allowed {
            is_nested: false,
            mounts: false,
            root: false,
            fallback: false,
            nested_fallbacks: true,
            shifts: false,
            ..inner
        };
        let slash = self.slash();
        let outer = std::mem::replace(&mut self.appends, slash == Slash::Append);
        let tree = self.tree(&mut own, &path, inner);
        self.appends = outer;
        Some(Node::Wrapped(path, slash, tree))
    }

    /// Returns the boundaries of a scope, and one more.
    fn behind(&mut self, scope: &Scope, prefix: &str, shifts: bool) -> Vec<Boundary> {
        self.boundaries += 1;
        let mut behind = scope.behind.clone();
        behind.push(Boundary {
            shifts,
            ..Boundary::new(self.boundaries, prefix)
        });
        behind
    }

    pub(super) fn handler(
        &mut self,
        pattern: String,
        method: Option<&'static str>,
        behind: Vec<Boundary>,
    ) -> usize {
        self.handlers.push(Handler {
            pattern,
            method,
            behind,
        });
        self.handlers.len() - 1
    }

    pub(super) fn by_method(&mut self, pattern: &str, behind: &[Boundary]) -> Vec<usize> {
        let methods: &[Option<&'static str>] = self.random.pick(&[
            &[None] as &[_],
            &[None],
            &[Some("GET")],
            &[Some("POST")],
            &[Some("GET"), Some("POST")],
        ]);
        let mut handlers = Vec::new();
        for method in methods {
            handlers.push(self.handler(pattern.to_owned(), *method, behind.to_vec()));
        }
        handlers
    }

    /// Adds a pattern to a matcher that compares parameters by shape only.
    pub(super) fn fits(matcher: &mut Matcher<()>, pattern: &str) -> bool {
        let named = shape(pattern).replace("{}", "{p}").replace("{*}", "{*p}");
        insert(matcher, &[named])
    }
}
