//! Type names that are defined more than once, or that the style guide rules out.

use std::collections::BTreeMap;

use super::allowed::Counts;
use super::text_files;

/// Names that several modules may define, each for its own type.
const SHARED: [&str; 5] = ["Builder", "Error", "Kind", "Settings", "State"];

/// Names that are no error as a word, but that the glossary replaces as the name of a type.
const RULED_OUT: [&str; 8] = [
    "Instead", "Line", "Link", "Look", "Place", "Terms", "Watch", "Who",
];

/// Returns the type that a line of formatted code defines.
///
/// Associated types are indented, so an indented `type` is not a definition of the crate's own.
fn defined(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let code = match code.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => code,
    };
    let (keyword, rest) = code.split_once(' ')?;
    let defines = match keyword {
        "struct" | "enum" | "trait" | "union" => true,
        "type" => !line.starts_with(' '),
        _ => false,
    };
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    let name = &rest[..end];
    (defines && name.starts_with(char::is_uppercase)).then_some(name)
}

pub(super) fn offenders() -> Counts {
    let mut files = text_files(&["src", "cli/src"]);
    files.retain(|file| file.has_extension(&["rs"]));
    let mut definitions: BTreeMap<&str, usize> = BTreeMap::new();
    for name in files
        .iter()
        .flat_map(|file| file.text.lines().filter_map(defined))
    {
        *definitions.entry(name).or_default() += 1;
    }
    definitions
        .retain(|name, count| (*count > 1 && !SHARED.contains(name)) || RULED_OUT.contains(name));
    let entry = |(name, count)| (("crate".to_owned(), format!("type {name}")), count);
    definitions.into_iter().map(entry).collect()
}

#[test]
fn definitions_are_found() {
    assert_eq!(
        defined("pub(in crate::store) struct Cell<T>(T);"),
        Some("Cell")
    );
    assert_eq!(defined("    enum Inner {"), Some("Inner"));
    assert_eq!(defined("pub type Alias = u8;"), Some("Alias"));
    assert_eq!(defined("    type Error = Infallible;"), None);
    assert_eq!(defined("// struct Commented;"), None);
}
