//! Other libraries, each set up as in its documentation.

pub mod axum_gcra;
pub mod axum_governor;
pub mod tower_governor;
