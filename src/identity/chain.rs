//! Several sources in order: [`Chain`].

use std::any::Any;
use std::sync::Arc;

use super::invalid_reason::InvalidReason;
use super::source::{Identified, Identify, IdentifyContext, has_empty_subject};
use crate::identity_types::Identity;

/// Identity sources in order. The first that accepts a credential applies.
///
/// An invalid credential does not end the search: a request may carry an expired token and a
/// valid API key. It is reported only if no source accepts a credential, once per request.
/// Neither does a verified token without a user: it applies only if no other source authenticates
/// the caller. If another credential is invalid, that is reported as well
/// ([`Identified::PartlyInvalid`]).
///
/// Tokens are the exception to the order. If several sources read tokens
/// ([`Identify::is_token_source`]), all tokens of the request are verified, at most 4. Tokens of
/// different users make the request [ambiguous](Identified::Ambiguous).
///
/// ```
/// use tollgate::Identity;
/// use tollgate::identity::{Authenticated, Chain, Custom};
///
/// let chain = Chain::new()
///     .then(Authenticated::identity())
///     .then(Custom::new(|head| head.header("x-device").map(|id| Identity::new("device", id))));
/// assert_eq!(chain.len(), 2);
/// ```
///
/// With an empty chain, every caller is unauthenticated.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Chain {
    sources: Vec<Arc<dyn Identify>>,
}

impl Chain {
    /// Creates an empty chain.
    pub const fn new() -> Self {
        Self {
            sources: Vec::new(),
        }
    }

    /// Adds a source at the end. If the source is a chain, its sources are added.
    pub fn then(mut self, source: impl Identify) -> Self {
        let any: &dyn Any = &source;
        if let Some(chain) = any.downcast_ref::<Self>() {
            return self.followed_by(chain);
        }
        self.sources.push(Arc::new(source));
        self
    }

    /// Adds the sources of another chain at the end.
    pub(crate) fn followed_by(mut self, other: &Self) -> Self {
        self.sources.extend(other.sources.iter().map(Arc::clone));
        self
    }

    /// Returns the number of sources.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Returns the dimension of each source.
    #[cfg(feature = "metrics")]
    pub(crate) fn dimensions(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(Identify::dimension)
    }

    /// Returns the sources, in their order.
    #[cfg(feature = "admin")]
    pub(crate) fn sources(&self) -> impl Iterator<Item = &dyn Identify> {
        self.sources.iter().map(|source| &**source)
    }

    /// Whether the chain is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }
}

impl Identify for Chain {
    fn identify(&self, context: &IdentifyContext<'_>) -> Identified {
        let mut best = Best::default();
        for source in &self.sources {
            // A token has authenticated the user: only other tokens can contradict it.
            if context.has_token_of_user() && !source.is_token_source() {
                continue;
            }
            let rejection_count = context.rejection_count();
            let found = source.identify(context);
            // A token source records the reasons itself, for each token.
            if let Identified::Invalid(reason) | Identified::PartlyInvalid(_, reason) = found
                && context.rejection_count() == rejection_count
            {
                context.reject(reason);
            }
            match found {
                Identified::Absent | Identified::Invalid(_) => {}
                Identified::Known(identity) if has_empty_subject(&identity) => {
                    context.reject(InvalidReason::Custom);
                }
                Identified::Known(identity) => {
                    if source.is_token_source() && identity.is_authenticated() {
                        context.accept_token_of_user();
                    }
                    if !best.add(identity) {
                        return Identified::Ambiguous;
                    }
                    let is_final = best.known.is_some() && !context.has_token_of_user();
                    if is_final {
                        break;
                    }
                }
                Identified::PartlyInvalid(identity, _) => best.add_unauthenticated(identity),
                rejected @ (Identified::Ambiguous | Identified::TooLarge) => return rejected,
            }
        }
        best.into_identified(context.rejected())
    }

    fn is_token_source(&self) -> bool {
        self.sources.iter().any(Identify::is_token_source)
    }

    fn description(&self) -> String {
        let sources = self.sources.iter().map(Identify::description);
        sources.collect::<Vec<_>>().join(", ")
    }
}

/// The best result of several credentials of one request.
#[derive(Default)]
pub(super) struct Best {
    /// The authenticated caller.
    known: Option<Arc<Identity>>,
    /// The first verified identity without a subject.
    unauthenticated: Option<Arc<Identity>>,
}

impl Best {
    /// Adds a verified identity. Returns `false` if it is another caller than the one before.
    pub(super) fn add(&mut self, identity: Arc<Identity>) -> bool {
        if !identity.is_authenticated() {
            self.add_unauthenticated(identity);
            return true;
        }
        if let Some(known) = &self.known {
            return known.counter_key() == identity.counter_key();
        }
        self.known = Some(identity);
        true
    }

    /// Adds a verified identity without a subject. Another one is ignored.
    fn add_unauthenticated(&mut self, identity: Arc<Identity>) {
        if !identity.is_authenticated() {
            self.unauthenticated.get_or_insert(identity);
        }
    }

    /// Returns the identity. If it has no subject, or if there is none, also why a credential was
    /// `rejected`.
    pub(super) fn into_identified(self, rejected: Option<InvalidReason>) -> Identified {
        match (self.known, self.unauthenticated, rejected) {
            (Some(identity), _, _) | (None, Some(identity), None) => Identified::Known(identity),
            (None, Some(identity), Some(reason)) => Identified::PartlyInvalid(identity, reason),
            (None, None, Some(reason)) => Identified::Invalid(reason),
            (None, None, None) => Identified::Absent,
        }
    }
}
