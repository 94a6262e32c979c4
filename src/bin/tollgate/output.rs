//! Where words go, and in which colours.

use std::env;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use serde_json::Value;

use crate::args::{Color, Format, OutputArgs};

/// Why it does not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The file has problems, which have been told.
    Problems,
    /// What was asked makes no sense, and that has been told.
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

/// How to say things.
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

    /// Whether what goes to standard output is coloured.
    pub(crate) fn colors_stdout(self) -> bool {
        self.colors(&io::stdout())
    }

    /// Whether what goes to standard error is coloured.
    pub(crate) fn colors_stderr(self) -> bool {
        self.colors(&io::stderr())
    }

    fn colors(self, stream: &impl IsTerminal) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
                !unwanted && !dumb && stream.is_terminal()
            }
        }
    }
}

/// Ends because of how it was called.
pub(crate) fn misused(why: impl Display) -> Failure {
    complain(&format!("error: {why}\n\nFor more, try '--help'.\n"));
    Failure::Usage
}

/// One object, for programs.
pub(crate) fn say_json(value: &Value) {
    say(&format!("{value:#}\n"));
}

/// To standard output. Whoever stops reading has read enough.
pub(crate) fn say(text: &str) {
    write(io::stdout().lock(), text);
}

/// To standard error.
pub(crate) fn complain(text: &str) {
    write(io::stderr().lock(), text);
}

fn write(mut to: impl Write, text: &str) {
    let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
}
