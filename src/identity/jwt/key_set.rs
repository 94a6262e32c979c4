//! Keys that can be replaced at run time: [`KeySet`].

use std::fmt;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use super::keys::JwtKeys;

/// A handle to keys that can be replaced at run time. Clones share the keys.
///
/// After [`replace`](KeySet::replace), tokens are verified with the new keys only, including cached
/// ones.
///
/// ```
/// use tollgate::identity::{Jwt, JwtAlgorithm, JwtKeys, KeySet};
///
/// let keys = KeySet::new(JwtKeys::secret("first")?);
/// let jwt = Jwt::builder().algorithms([JwtAlgorithm::Hs256]).key_set(&keys).build()?;
///
/// // Later, in the task that fetches the keys:
/// keys.replace(JwtKeys::secret("second")?);
/// # let _ = jwt;
/// # Ok::<(), tollgate::ValidationErrors>(())
/// ```
#[derive(Clone)]
pub struct KeySet {
    current: Arc<ArcSwap<Generation>>,
}

/// Keys, and the number of replacements before them.
pub(super) struct Generation {
    pub(super) number: u64,
    pub(super) keys: Arc<JwtKeys>,
}

impl KeySet {
    /// Creates a handle to `keys`.
    #[must_use]
    pub fn new(keys: JwtKeys) -> Self {
        Self {
            current: Arc::new(ArcSwap::from_pointee(Generation {
                number: 0,
                keys: Arc::new(keys),
            })),
        }
    }

    /// Replaces the keys, for all clones of this handle.
    ///
    /// A key that fits none of the algorithms of a [`Jwt`](super::Jwt) is ignored there.
    pub fn replace(&self, keys: JwtKeys) {
        let keys = Arc::new(keys);
        self.current.rcu(|before| Generation {
            number: before.number.wrapping_add(1),
            keys: Arc::clone(&keys),
        });
    }

    pub(super) fn current(&self) -> Guard<Arc<Generation>> {
        self.current.load()
    }
}

/// Shows the number of keys.
impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySet({})", self.current().keys.len())
    }
}
