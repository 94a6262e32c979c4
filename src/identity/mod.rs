//! Identifies callers: from the head of a request to an [`Identity`] of verified facts.
//!
//! [`ClientIp`] finds the client IP of every request. Sources, which implement [`Identify`], find the
//! identity. A [`Chain`] calls them in order:
//!
//! | source | reads |
//! |---|---|
#![cfg_attr(
    feature = "jwt",
    doc = "| [`Jwt`] | a JSON Web Token in `Authorization: Bearer` or in a cookie |"
)]
//! | [`ApiKey`] | a key in a header of your choice |
//! | [`Authenticated`] | a request extension that an authentication layer has set |
//! | [`UserIdHeader`] | a header that a trusted gateway sets |
//! | [`Custom`] | what your closure reads |
//!
//! ```
//! use tollgate::Identity;
//! use tollgate::identity::{ApiKey, Authenticated, Chain};
//!
//! #[derive(Clone)]
//! struct Account {
//!     id: String,
//! }
//!
//! let source = Chain::new()
//!     .then(Authenticated::extension(|account: &Account| Identity::user(&account.id)))
//!     .then(ApiKey::known("x-api-key", ["k_3f9c2a71", "k_80d1e6b5"])?);
//! # let _ = source;
//! # Ok::<(), tollgate::ValidationError>(())
//! ```
//!
//! A credential that is not accepted never selects a counter: the caller is unauthenticated and
//! limited by client IP.
//!
//! To add a source: implement [`Identify`] in a file of this directory, and export it here. A key of
//! the policy file is read in `config/`.
//!
//! [`Identity`]: crate::Identity

mod api_key;
mod authenticated;
mod chain;
mod client_ip;
mod custom;
mod forwarded;
mod forwarded_header;
mod invalid_reason;
#[cfg(feature = "jwt")]
mod jwt;
mod nat64;
mod networks;
mod on_invalid_credentials;
mod peer;
mod single_header;
mod source;
mod user_header;

pub use self::api_key::ApiKey;
pub use self::authenticated::Authenticated;
pub use self::chain::Chain;
pub use self::client_ip::{ClientAddress, ClientIp, ClientIpBuilder};
pub use self::custom::Custom;
pub use self::forwarded_header::ForwardedHeader;
pub use self::invalid_reason::InvalidReason;
#[cfg(feature = "jwt")]
pub use self::jwt::{Jwt, JwtAlgorithm, JwtBuilder, JwtKeys, KeySet};
pub use self::on_invalid_credentials::OnInvalidCredentials;
pub use self::peer::PeerAddr;
pub use self::source::{Identified, Identify, IdentifyContext};
pub use self::user_header::UserIdHeader;
