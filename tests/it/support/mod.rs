//! Helpers that several test modules use.

pub(crate) mod store_ext;
