//! The program `tollgate`: checks and explains policy files, with text or JSON output.
//!
//! The guide `tollgate::docs::command_line` describes the output and the exit codes.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod args;
mod check;
mod explain;
mod output;
mod policy_file;

use std::process::ExitCode;

use clap::Parser;

use self::args::{Args, CliCommand};
use self::output::{Failure, Output, write_stderr, write_stdout};

fn main() -> ExitCode {
    match Args::try_parse() {
        Ok(args) => match run(&args.command) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.into(),
        },
        // `--help` and `--version` are errors of the parser, too, but belong on standard output.
        Err(error) if error.use_stderr() => {
            write_stderr(&error.render().to_string());
            Failure::Usage.into()
        }
        Err(help) => {
            write_stdout(&help.render().to_string());
            ExitCode::SUCCESS
        }
    }
}

fn run(command: &CliCommand) -> Result<(), Failure> {
    match command {
        CliCommand::Check(args) => check::run(args, Output::new(&args.output)),
        CliCommand::Explain(args) => explain::run(args, Output::new(&args.output)),
        CliCommand::Schema => {
            write_stdout(&tollgate::config::schema());
            Ok(())
        }
    }
}
