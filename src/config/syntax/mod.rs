//! From text to a tree: TOML and JSON.

mod json;
mod toml;

use super::problem::{ConfigProblem, Told};
use super::tree::ConfigNode;

/// The deepest that tables and lists may be in each other: more than any policy needs.
const MAX_DEPTH: usize = 24;

/// In which language a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    Toml,
    Json,
}

impl Syntax {
    /// Reads a text. What is no text of this language is told, each place where it is not.
    pub(super) fn parse(self, text: &str) -> Result<ConfigNode, Vec<ConfigProblem>> {
        match self {
            Self::Toml => toml::parse(text),
            Self::Json => json::parse(text),
        }
    }
}

/// One value of TOML, as variables of the environment may hold it; without places.
pub(super) fn inline(text: &str) -> Result<ConfigNode, String> {
    toml::inline(text)
}

fn too_deep() -> ConfigProblem {
    ConfigProblem::new(Told {
        message: "tables or lists too deep in each other".to_owned(),
        expected: Some(format!("at most {MAX_DEPTH} in each other")),
        ..Told::default()
    })
}
