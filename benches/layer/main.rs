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
use tollgate_bench::{Args, Report};

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
    let args = Args::read(words)?;
    if !args.bench {
        eprintln!("nothing to test; measures under `cargo bench`");
        return Ok(());
    }
    let mut report = Report::new(args.json);
    rows::all(&args, &mut report)?;
    if report.is_empty() {
        return Err(format!("no row has {} in its id", args.filters.join(" or ")).into());
    }
    Ok(report.finish()?)
}
