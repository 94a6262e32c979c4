//! Parsers of TOML and JSON.

mod json;
mod toml;

use super::problem::ConfigProblem;
use super::tree::{ConfigNode, SourceSpan};

/// Deepest nesting of tables and lists.
const MAX_DEPTH: usize = 24;

/// Syntax of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    Toml,
    Json,
}

impl Syntax {
    /// Parses a text. Returns all syntax errors.
    pub(super) fn parse(self, text: &str) -> Result<ConfigNode, Vec<ConfigProblem>> {
        match self {
            Self::Toml => toml::parse(text),
            Self::Json => json::parse(text),
        }
    }
}

/// Parses one TOML value of an environment variable. Positions in it are meaningless.
pub(super) fn inline(text: &str) -> Result<ConfigNode, String> {
    toml::inline(text)
}

fn too_deep(span: SourceSpan) -> ConfigProblem {
    ConfigProblem::new("tables or lists are nested too deeply")
        .with_expected(format!("at most {MAX_DEPTH} levels"))
        .with_span(span)
}
