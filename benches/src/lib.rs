//! What the benchmarks share: arguments, keys, rounds, rows.
//!
//! Every row compares two sides that do the same work in the same process. They take turns, so
//! that whatever else the machine does meets both; what counts is their ratio.

#![forbid(unsafe_code)]

mod access;
mod args;
mod measure;
mod report;
mod run;

pub use access::{Order, addresses, names, tenants};
pub use args::Args;
pub use measure::{Duel, Pass, duel, median, pass, turns};
pub use report::{Report, Row, Target};
pub use run::run;
