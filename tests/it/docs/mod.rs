//! The guides, as far as doctests do not see them.

#[cfg(all(
    feature = "admin",
    feature = "axum",
    feature = "client",
    feature = "config",
    feature = "grpc",
    feature = "jwt",
    feature = "metrics",
    feature = "redis",
))]
mod commands;
mod compare;
#[cfg(feature = "axum")]
pub(crate) mod getting_started;
mod links;
mod manifest;
mod migrating;
mod not_run;
pub(crate) mod page;
mod snippets;
