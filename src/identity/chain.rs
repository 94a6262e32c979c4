//! Sources one after the other: [`Chain`].

use std::sync::Arc;

use super::source::{Asking, Identified, Identify};

/// Sources, asked in order: the first that knows the caller wins.
///
/// Wrong credentials do not end the walk. They are remembered, and told if no later source
/// knows the caller: a request may carry an expired token and a good API key. Only a source
/// that was not allowed to look ([`Identified::Throttled`]) ends it.
///
/// ```
/// use tollgate::Identity;
/// use tollgate::identity::{Authenticated, Chain, Custom};
///
/// let who = Chain::new()
///     .then(Authenticated::identity())
///     .then(Custom::new(|head| head.header("x-device").map(|id| Identity::new("device", id))));
/// assert_eq!(who.len(), 2);
/// ```
///
/// An empty chain knows nobody.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Chain {
    sources: Vec<Arc<dyn Identify>>,
}

impl Chain {
    /// A chain of no sources.
    pub const fn new() -> Self {
        Self {
            sources: Vec::new(),
        }
    }

    /// Asks `source` after those before it.
    pub fn then(mut self, source: impl Identify) -> Self {
        self.sources.push(Arc::new(source));
        self
    }

    /// How many sources there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Whether there is no source.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }
}

impl Identify for Chain {
    fn identify(&self, asking: &Asking<'_>) -> Identified {
        let mut so_far = Identified::Absent;
        for source in &self.sources {
            match source.identify(asking) {
                Identified::Absent => {}
                // Whoever is known by nothing would share a counter with all others like it.
                Identified::Known(identity) if identity.primary().1.is_empty() => {
                    so_far = Identified::Invalid;
                }
                Identified::Invalid => so_far = Identified::Invalid,
                end @ (Identified::Known(_) | Identified::Throttled) => return end,
            }
        }
        so_far
    }
}
