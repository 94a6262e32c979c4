//! What can be asked of it.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use tollgate::Timestamp;
use tollgate::policy::Inquiry;

/// Looks at files of rate limits.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Says all that is wrong with a file, or else what it means.
    ///
    /// Exit codes: 0 if nothing is wrong, 1 if something is, 2 if the command makes no sense.
    Check(Check),
    /// Says which limits count a request, whose counters, with which numbers, and why.
    Explain(Box<Explain>),
    /// Prints the JSON Schema of policy files, for editors.
    Schema,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// The file: JSON if its name ends in `.json`, else TOML. `TOLLGATE_` variables of the
    /// environment override what it says.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// The file, as for `check`.
    pub(crate) file: PathBuf,
    /// What is asked for: "GET /v1/secrets/42".
    #[arg(long, short, value_parser = Inquiry::new, value_name = "METHOD PATH")]
    pub(crate) request: Inquiry,
    /// The user who asks. Nobody who is known, if there is none and nothing like it.
    #[arg(long, short)]
    pub(crate) user: Option<String>,
    /// The tenant that the caller belongs to.
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// Something else that callers are known by, such as `api-key=k1`. Can be given again.
    #[arg(long, value_parser = dimension, value_name = "NAME=VALUE")]
    pub(crate) dimension: Vec<(String, String)>,
    /// The caller's tier.
    #[arg(long, short)]
    pub(crate) tier: Option<String>,
    /// A role that the caller has. Can be given again.
    #[arg(long)]
    pub(crate) role: Vec<String>,
    /// The address that the request comes from.
    #[arg(long)]
    pub(crate) ip: Option<IpAddr>,
    /// When, such as 2026-12-01T06:00:00Z; now, if it is not said.
    #[arg(long, value_parser = instant, value_name = "TIME")]
    pub(crate) at: Option<Timestamp>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// For people, or for programs.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Whether to use colours. By default only on a terminal, and not if `NO_COLOR` is set.
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Color,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text.
    #[default]
    Text,
    /// One JSON object on standard output.
    Json,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

fn dimension(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some(("ip", _)) => Err("the address is said with --ip".to_owned()),
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("expected a name and a value, such as `api-key=k1`".to_owned()),
    }
}

fn instant(text: &str) -> Result<Timestamp, String> {
    let expected = "expected a date with time and offset, such as `2026-12-01T06:00:00Z`";
    let read: jiff::Timestamp = text.parse().map_err(|_| expected.to_owned())?;
    let micros = u64::try_from(read.as_microsecond()).map_err(|_| "this is before 1970".to_owned());
    micros.map(Timestamp::from_micros)
}
