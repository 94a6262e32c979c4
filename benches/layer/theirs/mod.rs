//! The others, each as its own documentation says.

pub mod axum_gcra;
pub mod axum_governor;
pub mod tower_governor;
