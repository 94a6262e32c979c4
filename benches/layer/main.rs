//! The layer next to its peers: what each adds to a request, in process and over loopback.

#![forbid(unsafe_code)]

mod drive;
mod heap;
mod instructions;
mod loopback;
mod ours;
mod router;
mod rows;
mod theirs;
mod work;

use std::alloc::System;
use std::error::Error;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

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
