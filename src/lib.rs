//! A Tower rate-limiting layer for axum, hyper and tonic, with counters in memory or in Redis.
//!
//! One `.layer()` charges every request to the limits of its caller, adds rate-limit headers to the
//! response, and rejects excess requests with status 429:
//!
//! ```
//! # #[cfg(all(feature = "axum", feature = "jwt"))] {
//! use axum::{Router, routing::{get, post}};
//! use tollgate::RateLimitLayer;
//! use tollgate::identity::Jwt;
//! use tollgate::policy::{Count, Policy, Rule, Tiers};
//!
//! let policy = Policy::builder()
//!     .tiers(Tiers::new("free").tier("team", 5))
//!     .authenticated("1000/hour")
//!     .anonymous("100/hour")
//!     .endpoint("POST /login", Rule::new("10/hour").name("login").per(["ip"]).count(Count::failure()));
//!
//! let limits = RateLimitLayer::builder(policy)
//!     .identify(Jwt::hs256("read this secret from the environment").tier("app_metadata.plan").build()?)
//!     .build()?;
//!
//! let app: Router = Router::new()
//!     .route("/", get(|| async { "hello" }))
//!     .route("/login", post(|| async { "welcome" }))
//!     .layer(limits);
//! # }
//! # Ok::<(), tollgate::Error>(())
//! ```
//!
//! Without HTTP, for example in a bot, a mail queue or a job, use a [`Limiter`]:
//!
//! ```
//! use tollgate::Limiter;
//!
//! let messages = Limiter::new("20/hour")?;
//!
//! let decision = messages.check("alice").wait()?;
//! if decision.is_allowed() {
//!     println!("{} left", decision.remaining());
//! } else {
//!     println!("try again in {:?}", decision.retry_after());
//! }
//! # Ok::<(), tollgate::Error>(())
//! ```
//!
//! Several quotas are charged together or not at all:
//!
//! ```
//! use tollgate::{Algorithm, Limiter, MemoryStore, Quota, Window};
//!
//! let burst = Quota::builder(50, Window::MINUTE)
//!     .algorithm(Algorithm::TokenBucket)
//!     .burst(20)
//!     .build()?;
//! let api = Limiter::builder()
//!     .name("api")
//!     .quota(burst)
//!     .quota("1000/hour")
//!     .quota("10_000/month, fixed-window")
//!     .store(MemoryStore::builder().capacity(200_000).build()?)
//!     .build()?;
//!
//! // A subject is a text, a number, an address, or several named dimensions.
//! let decision = api.check([("tenant", "acme"), ("user", "alice")]).cost(5).wait()?;
//! assert_eq!(decision.remaining(), 15);
//! # Ok::<(), tollgate::Error>(())
//! ```
//!
//! # Overview
//!
//! | to | see |
//! |---|---|
//! | limit a service | [`RateLimitLayer`] |
//! | define rules for endpoints, users and tiers | [`policy`] |
//! | explain which rules apply to a request | [`policy::Policy::explain`] |
//! | identify callers | [`identity`], [`tier`] |
//! | choose headers and response bodies | [`headers`], [`response`] |
//! | limit something without HTTP | [`Limiter`], [`docs::programmatic`] |
//! | return a denial of a limiter from a handler | `DenialResponder` (feature `axum`) |
//! | define quotas | [`Quota`], [`Algorithm`], [`docs::algorithms`] |
//! | charge several subjects at once | [`Batch`], [`Store::decide`] |
//! | call an API that has limits | `client` (feature `client`) |
//! | define the policy in a file | `config` (feature `config`) |
//! | add a status endpoint, an admin API and a dashboard | `admin` (feature `admin`) |
//! | share counters with other processes | `RedisStore` (feature `redis`) |
//! | write a store | [`Store`], [`algorithm::State`], the [contract suite](store) |
//! | get metrics, events, statistics and alerts | [`observe`], [`docs::operations`] |
//! | test limits without waiting | [`ManualClock`] |
//! | change the crate | [`docs::design`] |
//!
//! # Guarantees
//!
//! - A batch is decided at one instant: all of its checks are charged, or none.
//! - No algorithm admits more than [its documented bound](docs::algorithms), under any concurrency,
//!   unless a [`MemoryStore`] is full and evicts a counter that is not used up. It counts evictions.
//! - A caller that is alone on its quota and waits for exactly `Retry-After` is admitted.
//! - A denied request charges nothing.
//! - A changed amount of a quota keeps its counters.
//! - Memory is bounded. A flood of new keys does not reset the counter of a blocked caller.
//! - A clock that goes backward is treated as stopped.
//! - A forged token or header never selects or changes another caller's counter.
//! - If a handler ran, its rule was charged, whatever spelling of the path reached it.
//! - The body of a request is never read; the body of a response and errors keep their types.
//!
//! # Limitations
//!
//! Counters in memory are lost when the process ends. Several processes share limits only if they share
//! a store.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `axum` (default) | routes and peer addresses of axum, extractors |
//! | `jwt` (default) | identity from JSON Web Tokens |
//! | `client` | layer for outbound requests that respects the limits of other services |
//! | `admin` | the status endpoint, the admin API and its dashboard |
//! | `config` | policies from TOML and JSON files, [key by key](docs::configuration) |
//! | `grpc` | bodies and peer addresses of tonic |
//! | `metrics` | metrics for the `metrics` facade |
//! | `redis` | counters in Redis or Valkey: `RedisStore` |
//! | `redis-tls` | Redis over TLS |
//! | `full` | all of the above |
//! | `test-util` | the contract suite for stores, with its vectors |
//!
//! The program `tollgate`, which checks policy files, is the package `tollgate-cli`:
//! [`docs::command_line`].

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

/// Compiles the code blocks of the README.
#[cfg(all(doctest, feature = "axum", feature = "jwt", feature = "redis"))]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(feature = "admin")]
pub mod admin;
pub mod algorithm;
mod batch;
mod calendar;
mod catch_panic;
#[cfg(feature = "client")]
#[cfg_attr(docsrs, doc(cfg(feature = "client")))]
pub mod client;
mod clock;
#[cfg(feature = "config")]
pub mod config;
mod configuration_warning;
mod decision;
pub mod docs;
mod error;
#[cfg(feature = "axum")]
mod extract;
mod future;
mod hashed;
mod head;
pub mod headers;
pub mod identity;
mod identity_types;
mod invisible;
mod key;
mod layer;
mod limiter;
mod network;
pub mod observe;
mod pipeline;
pub mod policy;
mod quota;
#[cfg(feature = "axum")]
mod responder;
pub mod response;
mod service;
pub mod store;
mod sync;
pub mod tier;
mod usage;

pub use self::batch::{Batch, Check, Group, MAX_BATCH, MAX_CHECKS};
pub use self::clock::{Clock, ManualClock, Sleep, SystemClock, Timestamp};
pub use self::decision::Decision;
pub use self::error::{
    Error, ReloadError, StoreError, StoreErrorKind, ValidationError, ValidationErrors,
};
#[cfg(feature = "axum")]
pub use self::extract::MissingRateLimitLayer;
pub use self::future::ResponseFuture;
pub use self::head::RequestHead;
pub use self::identity_types::Identity;
pub use self::key::{Counter, MAX_DIMENSIONS, OwnedSubject, Subject, Value};
pub use self::layer::{RateLimitLayer, RateLimitLayerBuilder};
pub use self::limiter::{CheckBuilder, Limiter, LimiterBuilder, Reservation, Reserve};
pub use self::pipeline::{Charge, PolicyStatus};
pub use self::quota::{Algorithm, IntoQuota, Quota, QuotaBuilder, Window};
#[cfg(feature = "axum")]
pub use self::responder::{DenialResponder, RateLimited};
pub use self::service::RateLimit;
pub use self::store::{
    CircuitBreaker, CircuitBreakerBuilder, DenyCache, DenyCacheBuilder, Leased, LeasedBuilder,
    MemoryStore, MemoryStoreBuilder, Override, OverrideStore, Overrides, Store, StoreAdmin,
    StoreFuture, StoreHealth, TimeSource,
};
#[cfg(feature = "redis")]
pub use self::store::{RedisStore, RedisStoreBuilder};
pub use self::usage::{Outcome, Usage, Usages};
