//! The file that the README shows, and what it says of a wrong one.

use super::toml;

const README: &str = include_str!("../../../README.md");

/// What stands between these two lines.
fn block(begins: &str, ends: &str) -> &'static str {
    let (_, rest) = README.split_once(begins).unwrap();
    rest.split_once(ends).unwrap().0
}

#[test]
fn the_file_of_the_readme_can_be_read() {
    let file = block("```toml\n", "```\n");
    toml(file).unwrap();

    let wrong = file.replace("\"10/hour\"", "\"10/houre\"");
    let told = toml(&wrong).unwrap_err().to_string();
    // Only the name is another.
    let expected = block("```text\n", "\n```\n").replace("limits.toml", "policy.toml");
    assert_eq!(told, expected);
}
