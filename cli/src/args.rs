//! Command-line arguments. The comments on commands and options are the text of `--help`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use tollgate::Timestamp;
use tollgate::policy::ExplainRequest;

/// Checks and explains rate-limit policy files.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Prints all problems of a policy file, or a summary of its limits.
    ///
    /// Exit codes: 0 if the file has no problems, 1 if it has problems or cannot be read, 2 if the
    /// arguments are wrong.
    Check(CheckArgs),
    /// Prints which limits count a request, on which counters, with which numbers, and why.
    Explain(Box<ExplainArgs>),
    /// Prints the JSON Schema of policy files, for editors.
    Schema,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Policy file: JSON if its name ends in `.json`, otherwise TOML. Environment variables that
    /// begin with `TOLLGATE_` override its values.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// Policy file, as for `check`.
    pub(crate) file: PathBuf,
    /// Method and path of the request, such as "GET /v1/secrets/42".
    #[arg(long, short, value_parser = ExplainRequest::new, value_name = "METHOD PATH")]
    pub(crate) request: ExplainRequest,
    /// User of the caller. Without --user, --tenant and --dimension, the caller is unauthenticated.
    #[arg(long, short)]
    pub(crate) user: Option<String>,
    /// Tenant of the caller.
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// Another dimension of the caller's identity, such as `api-key=k1`. Can be repeated.
    #[arg(long, value_parser = parse_dimension, value_name = "NAME=VALUE")]
    pub(crate) dimension: Vec<(String, String)>,
    /// Tier of the caller.
    #[arg(long, short)]
    pub(crate) tier: Option<String>,
    /// Role of the caller. Can be repeated.
    #[arg(long)]
    pub(crate) role: Vec<String>,
    /// Peer address of the request.
    #[arg(long)]
    pub(crate) ip: Option<IpAddr>,
    /// Time of the request, such as 2026-12-01T06:00:00Z. Default: now.
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<Timestamp>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// When to use colours. `auto` uses them on a terminal, unless `NO_COLOR` is set.
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

// The parser puts the value and the option in front of these messages.
fn parse_dimension(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some(("ip", _)) => Err("expected a dimension other than `ip`, which is set by --ip".into()),
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("expected a name and a value, such as `api-key=k1`".to_owned()),
    }
}
