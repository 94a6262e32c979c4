//! Tests of the guides that doctests cannot run.

pub(crate) mod commands;
mod compare;
pub(crate) mod getting_started;
mod links;
mod manifest;
mod migrating;
mod not_run;
pub(crate) mod page;
mod snippets;
