//! The description of a generated application: routers, handlers, policy, and where the layer is.

use std::fmt::{self, Display, Formatter};

use super::pattern::{Boundary, shape};
use super::plain::Normalization;

/// An application with its policy.
#[derive(Clone, Debug)]
pub(super) struct App {
    pub(super) server: Server,
    pub(super) handlers: Vec<Handler>,
    pub(super) rules: Vec<Route>,
}

#[derive(Clone, Debug)]
pub(super) enum Server {
    Axum(Position, Tree),
    /// A service that matches paths by itself, with the numbers of its handlers.
    Plain(Normalization, Vec<usize>),
}

/// Where the layer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// `router.layer(limits)`
    Inside,
    /// `router.route_layer(limits)`
    OnRoutes,
    /// `limits.layer(router)`
    Outside,
    /// `limits.layer(NormalizePath(router))`
    OutsideNormalized(Slash),
    /// `NormalizePath(limits.layer(router))`
    NormalizedOutside(Slash),
    /// `NormalizePath(router.layer(limits))`
    NormalizedInside(Slash),
    /// `Router::new().fallback_service(limits.layer(router))`
    BehindFallback,
    /// `nest("/a", inner.layer(limits))`, `nest_service("/a", inner.layer(limits))`
    InMounts,
    /// `nest_service("/a", limits.layer(inner))`
    AroundMounts,
}

/// What `NormalizePath` does with a trailing slash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slash {
    Trim,
    Append,
}

#[derive(Clone, Debug)]
pub(super) struct Handler {
    /// The pattern from the root of the application.
    pub(super) pattern: String,
    pub(super) method: Option<&'static str>,
    pub(super) behind: Vec<Boundary>,
}

/// One router.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) fallback: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    /// `route(path, get(h0).post(h1))`
    Route(String, Vec<usize>),
    /// `route_service(path, h0)`
    Service(String, usize),
    Nest(String, Tree),
    Merge(Tree),
    /// `nest_service(path, h0)`
    MountHandler(String, usize),
    /// `nest_service(path, router)`
    Mount(String, Option<Slash>, Tree),
    /// `route_service(path/{*rest}, NormalizePath(Router::new().nest(path, router)))`
    Wrapped(String, Slash, Tree),
}

/// One route of the policy.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) method: Option<&'static str>,
    pub(super) pattern: String,
    pub(super) target: Target,
    /// Whether it is an exemption that is not the route of a handler.
    pub(super) is_exempt_part: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Rule { name: String, has_global: bool },
    Exempt,
}

/// Whether a handler or rule of one method, or of all, is for this method. `HEAD` follows `GET`.
pub(super) fn covers(own: Option<&str>, method: &str) -> bool {
    own.is_none_or(|own| own == method || (own == "GET" && method == "HEAD"))
}

impl Route {
    pub(super) fn shape(&self) -> String {
        shape(&self.pattern)
    }

    pub(super) fn text(&self) -> String {
        match self.method {
            Some(method) => format!("{method} {}", self.pattern),
            None => self.pattern.clone(),
        }
    }
}

impl App {
    /// Whether middleware changes paths between the first router and the layer.
    pub(super) fn changes_paths(&self) -> bool {
        matches!(&self.server, Server::Axum(Position::InMounts, tree) if tree.changes_paths())
    }

    /// Returns the route of the policy that is for this handler: that of the request's method
    /// before one for all methods. `HEAD` follows `GET`.
    pub(super) fn rule_of(&self, handler: &Handler, method: &str) -> Option<&Route> {
        let shape_of_handler = shape(&handler.pattern);
        let get = (method == "HEAD").then_some(Some("GET"));
        [Some(Some(method)), get, Some(None)]
            .into_iter()
            .flatten()
            .find_map(|method| {
                let of_method = |rule: &&Route| rule.method == method;
                let mut rules = self.rules.iter().filter(of_method);
                rules.find(|rule| rule.shape() == shape_of_handler)
            })
    }
}

impl Tree {
    fn changes_paths(&self) -> bool {
        self.nodes.iter().any(|node| match node {
            Node::Wrapped(..) | Node::Mount(_, Some(_), _) => true,
            Node::Nest(_, inner) | Node::Merge(inner) | Node::Mount(_, None, inner) => {
                inner.changes_paths()
            }
            Node::Route(..) | Node::Service(..) | Node::MountHandler(..) => false,
        })
    }
}

impl Display for App {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.server {
            Server::Axum(position, tree) => {
                writeln!(f, "  layer: {position:?}")?;
                self.write_tree(f, tree, 2)?;
            }
            Server::Plain(normalization, handlers) => {
                writeln!(f, "  plain service: {normalization:?}")?;
                for handler in handlers {
                    writeln!(f, "    {}", self.handler(*handler))?;
                }
            }
        }
        writeln!(f, "  policy:")?;
        for rule in &self.rules {
            let target = match &rule.target {
                Target::Rule {
                    name,
                    has_global: true,
                } => name.clone(),
                Target::Rule { name, .. } => format!("{name}, without the global rule"),
                Target::Exempt => "exempt".to_owned(),
            };
            writeln!(f, "    {}: {target}", rule.text())?;
        }
        Ok(())
    }
}

impl App {
    fn handler(&self, id: usize) -> String {
        let Handler {
            pattern, method, ..
        } = &self.handlers[id];
        format!("h{id} = {} {pattern}", method.unwrap_or("ANY"))
    }

    fn write_tree(&self, f: &mut Formatter<'_>, tree: &Tree, depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        for node in &tree.nodes {
            match node {
                Node::Route(path, handlers) => {
                    let handlers: Vec<_> = handlers.iter().map(|id| self.handler(*id)).collect();
                    writeln!(f, "{indent}route {path}: {}", handlers.join(", "))?;
                }
                Node::Service(path, id) => {
                    writeln!(f, "{indent}route_service {path}: {}", self.handler(*id))?;
                }
                Node::MountHandler(path, id) => {
                    writeln!(f, "{indent}nest_service {path}: {}", self.handler(*id))?;
                }
                Node::Nest(path, inner) => {
                    writeln!(f, "{indent}nest {path}:")?;
                    self.write_tree(f, inner, depth + 1)?;
                }
                Node::Merge(inner) => {
                    writeln!(f, "{indent}merge:")?;
                    self.write_tree(f, inner, depth + 1)?;
                }
                Node::Mount(path, slash, inner) => {
                    let slash = slash.map(|slash| format!("NormalizePath::{slash:?} "));
                    let slash = slash.unwrap_or_default();
                    writeln!(f, "{indent}nest_service {path}: {slash}router")?;
                    self.write_tree(f, inner, depth + 1)?;
                }
                Node::Wrapped(path, slash, inner) => {
                    writeln!(
                        f,
                        "{indent}route_service {path}/{{*rest}}: NormalizePath::{slash:?} router, nest {path}:"
                    )?;
                    self.write_tree(f, inner, depth + 1)?;
                }
            }
        }
        if let Some(fallback) = tree.fallback {
            writeln!(f, "{indent}fallback: {}", self.handler(fallback))?;
        }
        Ok(())
    }
}
