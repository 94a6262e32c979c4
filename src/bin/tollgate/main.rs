//! `tollgate`: looks at policy files, for people and for CI.
//!
//! What it prints, and its exit codes, are described in `tollgate::docs::command_line`.

mod args;
mod check;
mod explain;
mod output;
mod read;

use std::process::ExitCode;

use clap::Parser;

use self::args::{Args, Command};
use self::output::{Failure, Output};

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(told) => {
            let text = told.render().to_string();
            if told.use_stderr() {
                output::complain(&text);
                return Failure::Usage.into();
            }
            output::say(&text);
            return ExitCode::SUCCESS;
        }
    };
    let result = match &args.command {
        Command::Check(check) => check::run(check, Output::new(&check.output)),
        Command::Explain(explain) => explain::run(explain, Output::new(&explain.output)),
        Command::Schema => {
            output::say(&tollgate::config::schema());
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.into(),
    }
}
