//! `tollgate check`: prints the problems of a policy file, or a summary of its limits.

mod table;
mod text;

use serde_json::json;
use tollgate::policy::Policy;

use crate::args::{CheckArgs, Format};
use crate::output::{Failure, Output, write_json, write_stderr, write_stdout};
use crate::policy_file;

pub(crate) fn run(args: &CheckArgs, output: Output) -> Result<(), Failure> {
    let policy: Policy = policy_file::read(&args.file, output)?.into_policy();
    let overview = policy.overview();
    match output.format {
        Format::Json => {
            let mut summary = json!(overview);
            summary["file"] = json!(args.file.display().to_string());
            summary["ok"] = json!(true);
            summary["problems"] = json!([]);
            summary["more"] = json!(0);
            write_json(&summary);
        }
        Format::Text => {
            let name = args.file.display().to_string();
            write_stdout(&text::summary(
                &name,
                &overview,
                output.has_colored_stdout(),
            ));
            write_stderr(&text::warnings(&overview, output.has_colored_stderr()));
        }
    }
    Ok(())
}
