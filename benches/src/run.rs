//! What every benchmark's `main` does.

use std::error::Error;
use std::io;

use crate::{Args, Report};

/// Parses the command line, measures the selected rows, and prints them.
///
/// # Errors
/// On unknown options, on a filter that selects no row, and if standard output is closed.
pub fn run(
    words: impl IntoIterator<Item = String>,
    rows: impl FnOnce(&Args, &mut Report) -> io::Result<()>,
) -> Result<(), Box<dyn Error>> {
    let args = Args::read(words)?;
    if !args.bench {
        eprintln!("nothing to test; measures under `cargo bench`");
        return Ok(());
    }
    let mut report = Report::new(args.json);
    rows(&args, &mut report)?;
    if report.is_empty() {
        return Err(format!("no row has {} in its id", args.filters.join(" or ")).into());
    }
    Ok(report.finish()?)
}
