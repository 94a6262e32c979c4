//! The guides, as far as doctests do not see them.

mod compare;
mod migrating;
