//! Tokens for people to try the examples with.

use jsonwebtoken::errors::Error;
use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
use serde_json::Value;

/// A token with these claims, good until tomorrow.
pub(crate) fn token(secret: &str, mut claims: Value) -> Result<String, Error> {
    claims["exp"] = (get_current_timestamp() + 24 * 60 * 60).into();
    let key = EncodingKey::from_secret(secret.as_bytes());
    encode(&Header::default(), &claims, &key)
}
