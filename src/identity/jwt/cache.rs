//! Cache of verified tokens.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use quick_cache::Equivalent;
use quick_cache::sync::Cache;

use crate::clock::Timestamp;
use crate::identity_types::Identity;

/// Verified tokens, bounded.
///
/// Only verified tokens are inserted, so wrong tokens evict nothing. The hash covers only the end of
/// the signature, and entries are compared in full: hashing a token of 800 bytes would cost more than
/// the rest of the look-up, and two valid tokens do not share a signature.
pub(super) struct TokenCache {
    tokens: Cache<TokenKey, CachedToken>,
}

/// Result of the verification of a token.
#[derive(Clone)]
pub(super) struct CachedToken {
    pub(super) identity: Arc<Identity>,
    pub(super) from: Timestamp,
    /// The first instant at which it has expired.
    pub(super) until: Timestamp,
    /// Number of the key set that has verified it.
    pub(super) generation: u64,
}

impl TokenCache {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            tokens: Cache::new(capacity),
        }
    }

    pub(super) fn get(&self, token: &[u8]) -> Option<CachedToken> {
        self.tokens.get(&TokenKeyRef(token))
    }

    pub(super) fn insert(&self, token: &[u8], cached: CachedToken) {
        self.tokens.insert(TokenKey(token.into()), cached);
    }

    pub(super) fn remove(&self, token: &[u8]) {
        self.tokens.remove(&TokenKeyRef(token));
    }

    pub(super) fn capacity(&self) -> u64 {
        self.tokens.capacity()
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }
}

#[derive(PartialEq, Eq)]
struct TokenKey(Box<[u8]>);

impl Hash for TokenKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        TokenKeyRef(&self.0).hash(state);
    }
}

/// Borrowed [`TokenKey`]. Both have equal hashes.
struct TokenKeyRef<'a>(&'a [u8]);

impl Hash for TokenKeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // 96 bits of a signature. A client can choose them for tokens that are looked up, but not
        // for tokens that are inserted: those are verified.
        const END: usize = 16;
        let end = self.0.len().saturating_sub(END);
        state.write(&self.0[end..]);
    }
}

impl Equivalent<TokenKey> for TokenKeyRef<'_> {
    fn equivalent(&self, token: &TokenKey) -> bool {
        *self.0 == *token.0
    }
}
