//! Identity from an API key: [`ApiKey`].

use std::collections::HashMap;
use std::fmt;
use std::fmt::Write;
use std::sync::Arc;

use http::HeaderName;
use sha2::{Digest, Sha256};

use super::invalid_reason::InvalidReason;
use super::single_header::{SingleHeader, header_name};
use super::source::{Identified, Identify, IdentifyContext};
use crate::error::ValidationError;
use crate::identity_types::Identity;

/// Identifies callers by an API key in a header.
///
/// ```
/// use tollgate::Identity;
/// use tollgate::identity::ApiKey;
///
/// // Verify the key yourself and return the identity.
/// let source = ApiKey::header("x-api-key", |key| {
///     let (id, _secret) = key.split_once('.')?;
///     // … compare the secret with what you have stored for `id` …
///     Some(Identity::new(Identity::API_KEY, id).tenant("acme"))
/// })?;
///
/// // Or list a few fixed keys.
/// let source = ApiKey::known("x-api-key", ["k_3f9c2a71", "k_80d1e6b5"])?;
/// # let _ = source;
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
///
/// Keys are not stored: neither in an identity nor in a counter. Header lines that
/// differ are [ambiguous](Identified::Ambiguous), identical ones count as one, and a key over 16
/// KiB is [too large](Identified::TooLarge): such a request gets 401. An empty value is no key.
pub struct ApiKey {
    name: HeaderName,
    verification: Verification,
}

enum Verification {
    Closure(Box<VerifyKey>),
    Known(HashMap<[u8; 32], Arc<Identity>>),
    Any,
}

/// Largest key that is verified, in bytes. Equal to the default for tokens.
const MAX_LENGTH: usize = 16 << 10;

const WRONG: Identified = Identified::Invalid(InvalidReason::ApiKey);

type VerifyKey = dyn Fn(&str) -> Option<Identity> + Send + Sync;

impl ApiKey {
    /// Reads keys in the header `name` and verifies them with `verify`, which returns `None` for a
    /// wrong key. It is called for every request with a key: it must not block.
    pub fn header(
        name: &str,
        verify: impl Fn(&str) -> Option<Identity> + Send + Sync + 'static,
    ) -> Result<Self, ValidationError> {
        Self::new(name, Verification::Closure(Box::new(verify)))
    }

    /// Accepts a fixed set of keys in the header `name`.
    ///
    /// Keys are compared by their SHA-256 digests, so that the duration reveals nothing about a
    /// key. The identity is `api-key` with the first 16 bytes of the digest in hexadecimal.
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
            known.insert(digest, Arc::new(identity_of(&digest)));
        }
        Self::new(name, Verification::Known(known))
    }

    /// Accepts every key in the header `name`, without verification.
    ///
    /// **A client that invents a new key gets a new counter.** Use it only behind a gateway that
    /// rejects wrong keys.
    pub fn any_insecure(name: &str) -> Result<Self, ValidationError> {
        Self::new(name, Verification::Any)
    }

    fn new(name: &str, verification: Verification) -> Result<Self, ValidationError> {
        let name = header_name("API key header", name)?;
        Ok(Self { name, verification })
    }
}

impl Identify for ApiKey {
    fn identify(&self, context: &IdentifyContext<'_>) -> Identified {
        let key = match SingleHeader::of(&context.head(), &self.name) {
            SingleHeader::Absent => return Identified::Absent,
            SingleHeader::Different => return Identified::Ambiguous,
            SingleHeader::Only(line) | SingleHeader::Identical(line) => line,
        };
        if key.is_empty() {
            return Identified::Absent;
        }
        if key.len() > MAX_LENGTH {
            return Identified::TooLarge;
        }
        match &self.verification {
            Verification::Closure(verify) => {
                let Ok(key) = str::from_utf8(key) else {
                    return WRONG;
                };
                verify(key).map_or(WRONG, Identified::known)
            }
            Verification::Known(known) => match known.get(&digest(key)) {
                Some(identity) => Identified::Known(Arc::clone(identity)),
                None => WRONG,
            },
            Verification::Any => Identified::known(identity_of(&digest(key))),
        }
    }

    fn dimension(&self) -> &str {
        Identity::API_KEY
    }

    fn description(&self) -> String {
        format!("API key in `{}`", self.name)
    }
}

fn digest(key: &[u8]) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// Returns the identity of a key: the first 16 bytes of its digest in hexadecimal.
fn identity_of(digest: &[u8; 32]) -> Identity {
    let mut hex = String::with_capacity(32);
    for byte in &digest[..16] {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    Identity::new(Identity::API_KEY, hex)
}

/// Shows the header. Never shows a key.
impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey")
            .field("header", &self.name)
            .finish_non_exhaustive()
    }
}
