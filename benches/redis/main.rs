//! Decisions in Redis: how close one call each comes to what the server can do, what travelling
//! together adds to that, and what others make of the same server.

#![forbid(unsafe_code)]

mod ceiling;
mod cpu;
mod hot;
mod load;
mod ours;
mod rows;
mod server;
mod theirs;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    tollgate_bench::run(std::env::args().skip(1), rows::all)
}
