//! The other half: a layer for outbound requests that keeps to the limits it is told.
//!
//! It goes around anything that sends requests and is a tower service: the client of
//! hyper-util, reqwest, tonic's channel, your own.
//!
//! ```no_run
//! use bytes::Bytes;
//! use http::Request;
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use tollgate::client::PoliteLayer;
//! use tower::{Layer, ServiceExt};
//!
//! # async fn send() -> Result<(), Box<dyn std::error::Error>> {
//! let polite = PoliteLayer::new();
//! let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
//! let client = polite.layer(client);
//!
//! let request = Request::get("http://api.example.com/items/1").body(Full::default())?;
//! let response = client.clone().oneshot(request).await?;
//!
//! if let Some(limits) = polite.limits("api.example.com") {
//!     println!("{:?} of {:?} left", limits.remaining(), limits.limit());
//! }
//! # let _ = response;
//! # Ok(())
//! # }
//! ```
//!
//! The [guide](crate::docs::client) says what it does and when, and how to use it with reqwest.
//! What it understands of headers is told by [`Limits`](crate::headers::Limits).

mod budget;
mod builder;
mod dice;
mod event;
mod future;
mod host;
mod hosts;
mod layer;
mod pace;
mod resend;
mod service;
mod verdict;

pub use self::builder::PoliteLayerBuilder;
pub use self::future::PoliteFuture;
pub use self::layer::PoliteLayer;
pub use self::resend::{Once, Resend};
pub use self::service::Polite;
