//! Peers, set up as their documentation shows.

pub mod axum_gcra;
pub mod axum_governor;
pub mod tower_governor;
