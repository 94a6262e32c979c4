//! Sources one after the other: [`Chain`].

use std::sync::Arc;

use super::source::{Asking, Identified, Identify};

/// Sources, asked in order: the first that knows the caller wins.
///
/// Wrong credentials do not end the walk: a request may carry an expired token and a good API
/// key. Nor does a source that was not allowed to look ([`Identified::Throttled`]): a later one
/// may have nothing to verify. If no later source knows the caller, that is what is told.
///
/// Each source pays for itself. What a wrong token has cost stays charged, also if a good key
/// comes with it, and the key is not charged for the token.
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

    /// Asks those of the other chain after its own.
    pub(crate) fn followed_by(mut self, other: &Self) -> Self {
        self.sources.extend(other.sources.iter().map(Arc::clone));
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
            let found = match source.identify(asking) {
                // Whoever is known by nothing would share a counter with all others like it.
                Identified::Known(identity) if identity.primary().1.is_empty() => {
                    Identified::Invalid
                }
                found => found,
            };
            asking.settle(&found);
            match (&found, &so_far) {
                (Identified::Known(_), _) => return found,
                (Identified::Absent, _) | (Identified::Invalid, Identified::Throttled) => {}
                (Identified::Invalid | Identified::Throttled, _) => so_far = found,
            }
        }
        so_far
    }
}
