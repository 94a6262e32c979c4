//! Generates the patterns of routes, nested routers and mounts.

use super::generate::Generator;

/// Few, so that routes overlap. One of each kind that is written in a special way.
const LITERALS: [&str; 8] = ["a", "b", "c", "v1", "files", "login", "a%20b", "{{x}}"];

/// Whether axum removes this prefix from the path of requests to a nested service.
pub(super) fn is_removed(prefix: &str) -> bool {
    !prefix.contains("u_{") && !prefix.contains("{{")
}

/// Whether the first segment is not a parameter.
pub(super) fn is_literal_first(path: &str) -> bool {
    !path.starts_with("/{") || path.starts_with("/{{")
}

impl Generator<'_> {
    /// Returns a pattern such as `/a/{p1}/{*p2}`.
    pub(super) fn path(&mut self, may_be_root: bool) -> String {
        let from = usize::from(!may_be_root);
        let count = from + self.random.below(4 - from);
        let mut path = String::new();
        for index in 0..count {
            path.push('/');
            let is_last = index + 1 == count;
            let segment = self.segment(is_last);
            path.push_str(&segment);
        }
        let slash = if self.appends { 100 } else { 7 };
        if path.is_empty() || (!path.contains("{*") && self.random.chance(slash)) {
            path.push('/');
        }
        path
    }

    /// Returns the prefix of a nested router, or of a mount if axum has to remove it.
    pub(super) fn prefix(&mut self, must_be_removed: bool) -> String {
        let mut path = String::new();
        for _ in 0..=self.random.below(2) {
            let segment = loop {
                let segment = self.segment(false);
                if !must_be_removed || is_removed(&segment) {
                    break segment;
                }
            };
            path.push('/');
            path.push_str(&segment);
        }
        if self.random.chance(4) {
            path.push('/');
        }
        path
    }

    /// Whether a path that ends in a slash matches, if all of them do.
    pub(super) fn is_reachable(&self, pattern: &str) -> bool {
        !self.appends || pattern.ends_with('/') || pattern.contains("{*")
    }

    fn segment(&mut self, may_be_wildcard: bool) -> String {
        self.parameters += 1;
        let number = self.parameters;
        match self.random.below(100) {
            0..60 => self.random.pick(&LITERALS).to_owned(),
            60..85 => format!("{{p{number}}}"),
            85..91 => format!("u_{{p{number}}}"),
            _ if may_be_wildcard => format!("{{*p{number}}}"),
            _ => self.random.pick(&LITERALS[..3]).to_owned(),
        }
    }
}
