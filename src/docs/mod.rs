//! Guides. Every example in them is run as a test.

#[doc = include_str!("algorithms.md")]
pub mod algorithms {}

#[doc = include_str!("command_line.md")]
pub mod command_line {}

#[doc = include_str!("configuration.md")]
pub mod configuration {}

#[doc = include_str!("design.md")]
pub mod design {}

#[doc = include_str!("operations.md")]
pub mod operations {}
