//! Guides.
/// draft
pub mod algorithms {}
