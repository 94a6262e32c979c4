//! Watching: what statistics and metrics cost a decision, with and without them in one run, and
//! how much memory they need for millions of callers.

#![forbid(unsafe_code)]

mod observed;
mod rows;

use std::alloc::System;
use std::error::Error;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> Result<(), Box<dyn Error>> {
    tollgate_bench::run(std::env::args().skip(1), rows::all)
}
