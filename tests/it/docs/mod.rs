//! The guides, as far as doctests do not see them.

pub(crate) mod commands;
mod compare;
pub(crate) mod getting_started;
mod links;
mod manifest;
mod migrating;
mod not_run;
pub(crate) mod page;
mod snippets;
