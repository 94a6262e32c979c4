//! Removes what a failure does not need.

use super::tree::{App, Node, Server, Tree};

/// Removes routes, fallbacks and rules one by one, as long as `fails` holds.
pub(super) fn shrink(mut app: App, mut fails: impl FnMut(&App) -> bool) -> App {
    let mut index = 0;
    while let Some(smaller) = without(&app, index) {
        if fails(&smaller) {
            app = smaller;
        } else {
            index += 1;
        }
    }
    app
}

/// Returns the application without its part number `index`, if it has so many.
fn without(app: &App, index: usize) -> Option<App> {
    let mut smaller = app.clone();
    let mut left = index;
    let is_removed = match &mut smaller.server {
        Server::Axum(_, tree) => remove(tree, &mut left),
        Server::Plain(_, served) => take(served, &mut left),
    };
    (is_removed || take(&mut smaller.rules, &mut left)).then_some(smaller)
}

fn take<T>(items: &mut Vec<T>, left: &mut usize) -> bool {
    let is_here = *left < items.len();
    if is_here {
        items.remove(*left);
    } else {
        *left -= items.len();
    }
    is_here
}

fn remove(tree: &mut Tree, left: &mut usize) -> bool {
    if tree.fallback.is_some() {
        if *left == 0 {
            tree.fallback = None;
            return true;
        }
        *left -= 1;
    }
    take(&mut tree.nodes, left)
        || tree.nodes.iter_mut().any(|node| match node {
            Node::Nest(_, inner)
            | Node::Merge(inner)
            | Node::Mount(_, _, inner)
            | Node::Wrapped(_, _, inner) => remove(inner, left),
            Node::Route(..) | Node::Service(..) | Node::MountHandler(..) => false,
        })
}
