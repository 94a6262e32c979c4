//! Standard output, standard error, colours and exit codes.

use std::env;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use serde_json::Value;

use crate::args::{Color, Format, OutputArgs};

/// Reason for an exit code other than 0. The message has already been printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The policy file has problems or cannot be read: exit code 1.
    Problems,
    /// The arguments are wrong: exit code 2.
    Usage,
}

impl From<Failure> for ExitCode {
    fn from(failure: Failure) -> Self {
        Self::from(match failure {
            Failure::Problems => 1,
            Failure::Usage => 2,
        })
    }
}

/// Format and colours of a command's output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) format: Format,
    color: Color,
}

impl Output {
    pub(crate) const fn new(args: &OutputArgs) -> Self {
        Self {
            format: args.format,
            color: args.color,
        }
    }

    /// Returns whether text on standard output is coloured.
    pub(crate) fn has_colored_stdout(self) -> bool {
        self.has_colors(&io::stdout())
    }

    /// Returns whether text on standard error is coloured.
    pub(crate) fn has_colored_stderr(self) -> bool {
        self.has_colors(&io::stderr())
    }

    fn has_colors(self, stream: &impl IsTerminal) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let is_disabled = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
                !is_disabled && !is_dumb && stream.is_terminal()
            }
        }
    }
}

/// Prints an error about the arguments, in the layout of the argument parser.
pub(crate) fn usage_error(message: impl Display) -> Failure {
    write_stderr(&format!(
        "error: {message}\n\nFor more information, try '--help'.\n"
    ));
    Failure::Usage
}

/// Writes one JSON object to standard output.
pub(crate) fn write_json(value: &Value) {
    write_stdout(&format!("{value:#}\n"));
}

pub(crate) fn write_stdout(text: &str) {
    write(io::stdout().lock(), text);
}

pub(crate) fn write_stderr(text: &str) {
    write(io::stderr().lock(), text);
}

/// Ignores write errors: the reader of a pipe, such as `head -1`, may close it at any time, and the
/// exit code must still be that of the command.
fn write(mut stream: impl Write, text: &str) {
    let _ = stream
        .write_all(text.as_bytes())
        .and_then(|()| stream.flush());
}
