//! Finds every target that a reading of a path reaches.
//!
//! A path that is not plain can be read in several ways: a segment percent-encoded or decoded,
//! `%2F` as a slash or as part of a segment, an empty segment as a segment or as nothing, a
//! wildcard or mount that matches nothing. The walk follows all readings through the
//! [`Tree`] at once. A state is a node, a position and whether a slash was dropped or appended. The
//! walk visits each state once.

use std::collections::HashMap;

use super::path::{PathRejection, decode};
use super::table::RouteTarget;
use super::tree::{NodeId, RouteNode, Tree};

/// Most states that one walk visits. A path is walked a second time if a route ends in `/`, and a
/// path that middleware has changed is walked before and after the change: 4 × 256 states for one
/// request at most.
const MAX_STATES: usize = 256;

/// Most calls of [`Walk::segment`] for one path, with and without an appended slash. Without this
/// bound, 8 KiB of `%2F` take seconds.
const MAX_SEGMENT_CALLS: usize = 2_048;

/// Targets that the readings of a path reach.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reached {
    /// Each target once, in the order in which they were found.
    pub(super) targets: Vec<RouteTarget>,
    /// Whether some reading reaches no route.
    pub(super) is_unmatched: bool,
}

/// A piece of a path: the text between two separators, which are `/` and `%2F`.
#[derive(Clone, Copy)]
struct Token {
    start: usize,
    end: usize,
    /// Whether the separator before it is `%2F`, so that it can also be part of the segment
    /// before.
    joined: bool,
}

/// One walk over the tree. The recursion is as deep as the tree, and at most [`MAX_STATES`].
struct Walk<'w> {
    tree: &'w Tree,
    path: &'w [u8],
    tokens: Vec<Token>,
    /// For each state that was visited: whether some reading reaches no route from there.
    memo: HashMap<(NodeId, usize, bool), bool>,
    reached: Vec<RouteTarget>,
    segment_calls: usize,
    is_exceeded: bool,
    /// Whether the path is read with a slash after its end, as middleware may append one.
    appends_slash: bool,
}

/// Walks the tree along all readings of a path.
pub(super) fn walk(tree: &Tree, path: &str) -> Result<Reached, PathRejection> {
    let mut walk = Walk::new(tree, path);
    let is_unmatched = walk.reach(Tree::ROOT, 0, false);
    if tree.has_trailing_slash() && !walk.is_exceeded {
        // Adds targets only. That this reading reaches nothing does not make the path unmatched.
        walk.appends_slash = true;
        walk.memo.clear();
        walk.reach(Tree::ROOT, 0, true);
    }
    if walk.is_exceeded {
        return Err(PathRejection::TooManyReadings);
    }
    Ok(Reached {
        targets: walk.reached,
        // Routers match paths as they are. Their routes begin with a slash.
        is_unmatched: is_unmatched || !path.starts_with('/'),
    })
}

impl<'w> Walk<'w> {
    fn new(tree: &'w Tree, path: &'w str) -> Self {
        Self {
            tree,
            path: path.as_bytes(),
            tokens: tokens(path.as_bytes()),
            memo: HashMap::new(),
            reached: Vec::new(),
            segment_calls: 0,
            is_exceeded: false,
            appends_slash: false,
        }
    }

    /// Adds the targets that readings of the tokens from `i` on reach from a node. Returns whether
    /// some reading reaches none.
    ///
    /// `in_several` is set once a slash was dropped or appended: then one router has passed the
    /// path on to another, and the precedence of literals holds only within each of them. Example:
    /// the outer router has `/login` and `/{*rest}`, and behind the wildcard `NormalizePath` passes
    /// `///login` as `/login` to an inner router that has only `/{p}`. The literal `/login` of the
    /// outer router did not match, so `/{p}` is reached as well.
    ///
    /// Percent-decoding does not set it. A router that decodes does so before it matches, and then
    /// prefers the literal among its own routes. One that does not decode is the reading of the
    /// encoded segment, which no literal matches and which reaches the parameter by itself.
    fn reach(&mut self, id: NodeId, mut i: usize, mut in_several: bool) -> bool {
        let state = (id, i, in_several);
        if let Some(known) = self.memo.get(&state) {
            return *known;
        }
        if self.is_exceeded || self.memo.len() >= MAX_STATES {
            self.is_exceeded = true;
            return true;
        }
        // The tree has no cycles, so this entry is not read before it is overwritten below.
        self.memo.insert(state, true);
        let node = self.tree.node(id);
        let mut fails = false;
        while i < self.tokens.len() && self.is_empty(i) && !self.is_exceeded {
            fails |= self.segment(node, i, i + 1, in_several) | self.joined(node, i, in_several);
            (i, in_several) = (i + 1, true);
        }
        if i == self.tokens.len() {
            fails |= self.end(node);
        } else {
            fails |= self.segment(node, i, i + 1, in_several) | self.joined(node, i, in_several);
        }
        self.memo.insert(state, fails);
        fails
    }

    /// Adds what a path reaches that ends at a node. A wildcard that begins there may match
    /// nothing, as a mount does, or not match, as a plain route does not. So it is a target, and the
    /// path still counts as unmatched: another router may have a less literal route for it, and an
    /// exempt wildcard must not exempt it.
    fn end(&mut self, node: &RouteNode) -> bool {
        let end = if self.appends_slash {
            let slash = node.literals.get(&b""[..]);
            slash.and_then(|slash| self.tree.node(*slash).end)
        } else {
            node.end
        };
        self.add(end);
        self.add(node.wildcard);
        end.is_none()
    }

    /// Reads tokens from `i` on as one segment that contains encoded slashes.
    fn joined(&mut self, node: &RouteNode, i: usize, in_several: bool) -> bool {
        let (mut fails, mut next) = (false, i + 1);
        while !self.is_exceeded && self.tokens.get(next).is_some_and(|token| token.joined) {
            next += 1;
            fails |= self.segment(node, i, next, in_several);
        }
        fails
    }

    /// Reads the tokens from `i` up to `next` as one segment, encoded and decoded.
    fn segment(&mut self, node: &RouteNode, i: usize, next: usize, in_several: bool) -> bool {
        self.segment_calls += 1;
        self.is_exceeded |= self.segment_calls > MAX_SEGMENT_CALLS;
        if self.is_exceeded {
            return true;
        }
        let raw = &self.path[self.tokens[i].start..self.tokens[next - 1].end];
        // One byte more than any literal has is enough to differ from all of them.
        let limit = self.tree.longest() + 1;
        let decoded = decode(raw, limit);
        let raw = &raw[..raw.len().min(limit)];
        let fails = self.descend(node, raw, next, in_several);
        fails | (decoded != raw && self.descend(node, &decoded, next, in_several))
    }

    /// Follows one segment with the precedence of routers: literal, prefix, parameter, wildcard.
    /// The next one is tried if some reading fails below, and always `in_several` routers.
    fn descend(&mut self, node: &RouteNode, text: &[u8], next: usize, in_several: bool) -> bool {
        let mut is_matched = false;
        if let Some(child) = node.literals.get(text) {
            is_matched |= !self.reach(*child, next, in_several);
        }
        for (prefix, child) in &node.prefixed {
            if (!is_matched || in_several) && text.starts_with(prefix) {
                // Whether a parameter matches nothing depends on the version of the router.
                let is_reached = !self.reach(*child, next, in_several);
                is_matched |= is_reached && text.len() > prefix.len();
            }
        }
        if let Some(child) = node.parameter
            && (!is_matched || in_several)
        {
            let is_reached = !self.reach(child, next, in_several);
            is_matched |= is_reached && !text.is_empty();
        }
        if !is_matched || in_several {
            self.add(node.wildcard);
            // The rest is empty after a trailing slash: only a mount matches then.
            let is_rest_empty = text.is_empty() && next == self.tokens.len();
            is_matched |= node.wildcard.is_some() && !is_rest_empty;
        }
        !is_matched
    }

    fn is_empty(&self, i: usize) -> bool {
        self.tokens[i].start == self.tokens[i].end
    }

    fn add(&mut self, target: Option<RouteTarget>) {
        if let Some(target) = target
            && !self.reached.contains(&target)
        {
            self.reached.push(target);
        }
    }
}

/// Splits a path, without its first slash, at `/` and at `%2F`. The path `/` has no tokens.
fn tokens(path: &[u8]) -> Vec<Token> {
    let mut start = usize::from(path.first() == Some(&b'/'));
    let mut tokens = Vec::new();
    if start == path.len() {
        return tokens;
    }
    let (mut at, mut joined) = (start, false);
    while at < path.len() {
        let separator = match &path[at..] {
            [b'/', ..] => 1,
            [b'%', b'2', b'F' | b'f', ..] => 3,
            _ => {
                at += 1;
                continue;
            }
        };
        let end = at;
        tokens.push(Token { start, end, joined });
        at += separator;
        (start, joined) = (at, separator == 3);
    }
    let end = path.len();
    tokens.push(Token { start, end, joined });
    tokens
}

#[cfg(test)]
mod tests;
