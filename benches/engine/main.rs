//! The engine next to its peers: time per decision, bytes per key.

#![forbid(unsafe_code)]

mod instructions;
mod ours;
mod rows;
mod theirs;
mod work;

use std::alloc::System;
use std::error::Error;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts bytes on the heap. It costs something only where memory is allocated or freed,
/// which no decision on a known key does.
#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("--instructions", rest)) = words
        .split_first()
        .map(|(first, rest)| (first.as_str(), rest))
    {
        return Ok(instructions::run(rest)?);
    }
    tollgate_bench::run(words, rows::all)
}
