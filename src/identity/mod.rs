//! Who is asking: from a request's head to an [`Identity`], by verified facts only.
//!
//! Two questions are answered here. *From where?* — always, by [`ClientIp`]. *Who?* — by
//! sources that implement [`Identify`], asked one after the other as a [`Chain`]:
//!
//! | source | looks at |
//! |---|---|
#![cfg_attr(
    feature = "jwt",
    doc = "| [`Jwt`] | a JSON Web Token in `Authorization: Bearer` or in a cookie |"
)]
//! | [`ApiKey`] | a key in a header of your choice |
//! | [`Authenticated`] | what an authentication layer before this one has left in the extensions |
//! | [`UserIdHeader`] | a header that a trusted gateway sets |
//! | [`Custom`] | whatever your closure looks at |
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
//! let who = Chain::new()
//!     .then(Authenticated::extension(|account: &Account| Identity::user(&account.id)))
//!     .then(ApiKey::known("x-api-key", ["k_3f9c2a71", "k_80d1e6b5"])?);
//! # let _ = who;
//! # Ok::<(), tollgate::ValidationError>(())
//! ```
//!
//! A credential that is not accepted never selects a counter: its caller is unauthenticated and
//! limited by client IP.
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
mod line;
mod nat64;
mod networks;
mod peer;
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
pub use self::peer::PeerAddr;
pub use self::source::{Identified, Identify, IdentifyContext};
pub use self::user_header::UserIdHeader;
