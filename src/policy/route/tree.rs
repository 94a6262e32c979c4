//! Routes as a tree of segments, for paths that can be read in several ways.

use std::collections::HashMap;

use super::segment::Segment;
use super::table::RouteTarget;

/// Index of a node in its tree.
pub(super) type NodeId = u32;

/// The routes of one method, segment by segment. [`Walk`](super::walk::Walk) finds the targets of
/// a path in it.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<RouteNode>,
    /// Length of the longest literal or prefix. Longer text is equal to none of them.
    longest: usize,
    /// Whether a route ends in `/`.
    has_trailing_slash: bool,
}

/// Node of the tree, reached by the segments from the root to it.
#[derive(Debug, Default)]
pub(super) struct RouteNode {
    pub(super) literals: HashMap<Box<[u8]>, NodeId>,
    /// `/user_{name}`: the longest prefix first, as routers try them.
    pub(super) prefixed: Vec<(Box<[u8]>, NodeId)>,
    pub(super) parameter: Option<NodeId>,
    pub(super) wildcard: Option<RouteTarget>,
    /// The route that ends here.
    pub(super) end: Option<RouteTarget>,
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            nodes: vec![RouteNode::default()],
            longest: 0,
            has_trailing_slash: false,
        }
    }
}

impl Tree {
    pub(super) const ROOT: NodeId = 0;

    pub(super) fn node(&self, id: NodeId) -> &RouteNode {
        &self.nodes[id as usize]
    }

    pub(super) const fn longest(&self) -> usize {
        self.longest
    }

    pub(super) const fn has_trailing_slash(&self) -> bool {
        self.has_trailing_slash
    }

    /// Adds a route. No other route of the tree has the same segments.
    pub(super) fn insert(&mut self, segments: &[Segment], target: RouteTarget) {
        let mut at = Self::ROOT;
        for (index, segment) in segments.iter().enumerate() {
            let is_last = index + 1 == segments.len();
            at = match segment {
                Segment::Wildcard => {
                    self.nodes[at as usize].wildcard = Some(target);
                    return;
                }
                // The route `/` ends where the tree begins.
                Segment::Literal(text) if text.is_empty() && index == 0 && is_last => at,
                Segment::Literal(text) => {
                    self.has_trailing_slash |= text.is_empty() && is_last;
                    self.literal(at, text)
                }
                Segment::Prefixed(prefix) => self.prefixed(at, prefix),
                Segment::Parameter => self.parameter(at),
            };
        }
        self.nodes[at as usize].end = Some(target);
    }

    fn parameter(&mut self, at: NodeId) -> NodeId {
        if let Some(known) = self.nodes[at as usize].parameter {
            return known;
        }
        let new = self.add();
        self.nodes[at as usize].parameter = Some(new);
        new
    }

    fn literal(&mut self, at: NodeId, text: &[u8]) -> NodeId {
        self.longest = self.longest.max(text.len());
        if let Some(known) = self.nodes[at as usize].literals.get(text) {
            return *known;
        }
        let new = self.add();
        self.nodes[at as usize].literals.insert(text.into(), new);
        new
    }

    fn prefixed(&mut self, at: NodeId, prefix: &[u8]) -> NodeId {
        self.longest = self.longest.max(prefix.len());
        let known = self.nodes[at as usize].prefixed.iter();
        if let Some((_, known)) = known.clone().find(|(known, _)| **known == *prefix) {
            return *known;
        }
        let new = self.add();
        let all = &mut self.nodes[at as usize].prefixed;
        all.push((prefix.into(), new));
        all.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        new
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a policy with 2^32 segments does not fit into memory"
    )]
    fn add(&mut self) -> NodeId {
        self.nodes.push(RouteNode::default());
        (self.nodes.len() - 1) as NodeId
    }
}
