//! A layer for outbound requests that keeps to the limits of servers.
//!
//! It wraps any tower service that sends requests: the clients of hyper-util and reqwest, tonic's
//! channel, your own.
//!
//! ```no_run
//! use bytes::Bytes;
//! use http::Request;
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use tollgate::client::PaceLayer;
//! use tower::{Layer, ServiceExt};
//!
//! # async fn send() -> Result<(), Box<dyn std::error::Error>> {
//! let pace = PaceLayer::new();
//! let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
//! let client = pace.layer(client);
//!
//! let request = Request::get("http://api.example.com/items/1").body(Full::default())?;
//! let response = client.clone().oneshot(request).await?;
//!
//! if let Some(limits) = pace.limits("api.example.com") {
//!     println!("{:?} of {:?} left", limits.remaining, limits.limit);
//! }
//! # let _ = response;
//! # Ok(())
//! # }
//! ```
//!
//! The [guide](crate::docs::client) explains when it waits, and how to use it with reqwest.
//! [`Limits`](crate::headers::Limits) lists the headers that it reads.

mod builder;
mod event;
mod future;
mod host;
mod hosts;
mod jitter;
mod layer;
mod outcome;
mod pace;
mod rate_limit_error;
mod replay;
mod reservation;
mod retry_budget;
mod service;

pub use self::builder::PaceLayerBuilder;
pub use self::future::PaceFuture;
pub use self::layer::PaceLayer;
pub use self::rate_limit_error::{RateLimitDetails, RateLimitError};
pub use self::replay::{ReplayBody, SendOnce};
pub use self::service::PaceService;
