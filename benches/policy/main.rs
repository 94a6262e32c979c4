//! Which rules apply: what it costs in a policy of ten thousand endpoints, next to one of ten.

#![forbid(unsafe_code)]

mod policies;
mod rows;

use std::alloc::System;
use std::error::Error;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> Result<(), Box<dyn Error>> {
    tollgate_bench::run(std::env::args().skip(1), rows::all)
}
