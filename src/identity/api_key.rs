//! Callers known by a key: [`ApiKey`].

use std::collections::HashMap;
use std::fmt;
use std::fmt::Write;
use std::sync::Arc;

use http::HeaderName;
use sha2::{Digest, Sha256};

use super::invalid_reason::InvalidReason;
use super::line::{Line, header_name};
use super::source::{Identified, Identify, IdentifyContext};
use crate::error::ValidationError;
use crate::identity_types::Identity;

/// A caller known by an API key in a header.
///
/// ```
/// use tollgate::Identity;
/// use tollgate::identity::ApiKey;
///
/// // You verify, and say who it is.
/// let who = ApiKey::header("x-api-key", |key| {
///     let (id, _secret) = key.split_once('.')?;
///     // … compare the secret with what you have stored for `id` …
///     Some(Identity::new(Identity::API_KEY, id).tenant("acme"))
/// })?;
///
/// // Or there are a few keys that never change.
/// let who = ApiKey::known("x-api-key", ["k_3f9c2a71", "k_80d1e6b5"])?;
/// # let _ = who;
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
///
/// Keys themselves are kept nowhere: neither in an identity nor in a counter. Header lines that
/// differ are [ambiguous](Identified::Ambiguous), identical ones count as one, and a key over 16
/// KiB is [too large](Identified::TooLarge): such a request gets 401. An empty value is no key.
pub struct ApiKey {
    name: HeaderName,
    check: Check,
}

enum Check {
    Closure(Box<Closure>),
    Known(HashMap<[u8; 32], Arc<Identity>>),
    Any,
}

/// The largest key that is verified, in bytes: as for tokens.
const MAX_LENGTH: usize = 16 << 10;

const WRONG: Identified = Identified::Invalid(InvalidReason::ApiKey);

type Closure = dyn Fn(&str) -> Option<Identity> + Send + Sync;

impl ApiKey {
    /// Keys in the header `name`, verified by `verify`, which returns `None` for a wrong key. It
    /// is called for every request with a key: it should be fast and must not block.
    pub fn header(
        name: &str,
        verify: impl Fn(&str) -> Option<Identity> + Send + Sync + 'static,
    ) -> Result<Self, ValidationError> {
        Self::new(name, Check::Closure(Box::new(verify)))
    }

    /// A fixed set of keys in the header `name`.
    ///
    /// They are compared by their SHA-256 digests, so that the time it takes tells nothing of
    /// a key. The identity is `api-key` with the first 16 bytes of the digest in hexadecimal.
    pub fn known(
        name: &str,
        keys: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, ValidationError> {
        let mut known = HashMap::new();
        for key in keys {
            let key = key.as_ref();
            if key.is_empty() || key.len() > MAX_LENGTH {
                let length = format!("{} bytes", key.len());
                return Err(ValidationError::new("API key", length, "1 to 16384 bytes"));
            }
            let digest = digest(key.as_bytes());
            known.insert(digest, Arc::new(anonymous(&digest)));
        }
        Self::new(name, Check::Known(known))
    }

    /// Every key in the header `name` is somebody, without verification.
    ///
    /// **Whoever makes up a new key gets a fresh counter.** It is for servers behind a
    /// gateway that refuses wrong keys.
    pub fn any_insecure(name: &str) -> Result<Self, ValidationError> {
        Self::new(name, Check::Any)
    }

    fn new(name: &str, check: Check) -> Result<Self, ValidationError> {
        let name = header_name("API key header", name)?;
        Ok(Self { name, check })
    }
}

impl Identify for ApiKey {
    fn identify(&self, asking: &IdentifyContext<'_>) -> Identified {
        let key = match Line::of(&asking.head(), &self.name) {
            Line::Absent => return Identified::Absent,
            Line::Different => return Identified::Ambiguous,
            Line::Only(line) | Line::Identical(line) => line,
        };
        if key.is_empty() {
            return Identified::Absent;
        }
        if key.len() > MAX_LENGTH {
            return Identified::TooLarge;
        }
        match &self.check {
            Check::Closure(verify) => {
                let Ok(key) = str::from_utf8(key) else {
                    return WRONG;
                };
                verify(key).map_or(WRONG, Identified::known)
            }
            Check::Known(known) => match known.get(&digest(key)) {
                Some(identity) => Identified::Known(Arc::clone(identity)),
                None => WRONG,
            },
            Check::Any => Identified::known(anonymous(&digest(key))),
        }
    }
}

fn digest(key: &[u8]) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// Known by the digest and nothing else.
fn anonymous(digest: &[u8; 32]) -> Identity {
    let mut hex = String::with_capacity(32);
    for byte in &digest[..16] {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    Identity::new(Identity::API_KEY, hex)
}

/// Shows the header, and no key.
impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey")
            .field("header", &self.name)
            .finish_non_exhaustive()
    }
}
