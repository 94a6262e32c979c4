//! Tokens that have been verified before.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use quick_cache::Equivalent;
use quick_cache::sync::Cache;

use crate::clock::Timestamp;
use crate::identity_types::Identity;

/// Verified tokens, as many as there is room for.
///
/// Only what has been verified gets in, so wrong tokens push nobody out. A token is found by
/// the end of its signature and then compared in full: hashing eight hundred bytes would cost
/// more than all the rest, and nobody can make a second good token with the same signature.
pub(super) struct Verified {
    tokens: Cache<Token, Finding>,
}

/// What a token has been found to say.
#[derive(Clone)]
pub(super) struct Finding {
    pub(super) identity: Arc<Identity>,
    pub(super) from: Timestamp,
    /// The first instant at which it is no longer good.
    pub(super) until: Timestamp,
    /// The keys it has been verified with.
    pub(super) generation: u64,
}

impl Verified {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            tokens: Cache::new(capacity),
        }
    }

    pub(super) fn get(&self, token: &[u8]) -> Option<Finding> {
        self.tokens.get(&Sought(token))
    }

    pub(super) fn insert(&self, token: &[u8], finding: Finding) {
        self.tokens.insert(Token(token.into()), finding);
    }

    pub(super) fn remove(&self, token: &[u8]) {
        self.tokens.remove(&Sought(token));
    }

    pub(super) fn capacity(&self) -> u64 {
        self.tokens.capacity()
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }
}

#[derive(PartialEq, Eq)]
struct Token(Box<[u8]>);

impl Hash for Token {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Sought(&self.0).hash(state);
    }
}

/// A token that is looked for, borrowed.
struct Sought<'a>(&'a [u8]);

impl Hash for Sought<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // 96 bits of a signature. Whoever looks for wrong tokens may choose them, but only
        // good ones take a place.
        const END: usize = 16;
        let end = self.0.len().saturating_sub(END);
        state.write(&self.0[end..]);
    }
}

impl Equivalent<Token> for Sought<'_> {
    fn equivalent(&self, token: &Token) -> bool {
        *self.0 == *token.0
    }
}
