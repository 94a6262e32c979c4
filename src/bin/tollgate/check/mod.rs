//! `tollgate check`: what is wrong with a file, or what it means.

mod json;
mod table;
mod text;

use tollgate::policy::Policy;

use crate::args::{Check, Format};
use crate::output::{Failure, Output, complain, say, say_json};
use crate::read;

pub(crate) fn run(args: &Check, output: Output) -> Result<(), Failure> {
    let policy: Policy = read::read(&args.file, output)?.into_policy();
    let overview = policy.overview();
    match output.format {
        Format::Json => say_json(&json::overview(&args.file, overview)),
        Format::Text => {
            let name = args.file.display().to_string();
            say(&text::overview(&name, overview, output.colors_stdout()));
            complain(&text::warnings(overview, output.colors_stderr()));
        }
    }
    Ok(())
}
