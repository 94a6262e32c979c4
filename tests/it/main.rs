//! The integration tests, in one binary.

#[cfg(all(feature = "admin", feature = "tracing"))]
mod admin;
#[cfg(all(feature = "admin", feature = "tracing"))]
mod browser;
#[cfg(feature = "client")]
mod client;
mod concurrency;
#[cfg(feature = "config")]
mod config;
mod curl;
mod docs;
#[cfg(feature = "jwt")]
mod equivalence;
mod examples;
mod explain;
mod extremes;
mod flood;
mod headers;
#[cfg(feature = "jwt")]
mod hostile_review;
mod identity;
mod layer;
mod layering;
mod limiter;
#[cfg(feature = "tracing")]
mod log;
mod observe;
mod properties;
#[cfg(feature = "redis")]
mod redis;
mod reference;
#[cfg(all(feature = "config", feature = "jwt", feature = "tracing"))]
mod reload;
mod response;
mod routing;
mod sockets;
mod store_contract;
mod stores;
mod support;
mod tier;
mod vectors;
mod wall_clock;
mod wire;
