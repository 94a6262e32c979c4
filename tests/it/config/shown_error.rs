//! The error message that the guide to the command line shows.

use super::toml;

const GUIDE: &str = include_str!("../../../src/docs/command_line.md");

/// Returns the text between the first occurrence of `begins` and the next one of `ends`.
fn block(begins: &str, ends: &str) -> &'static str {
    let (_, rest) = GUIDE.split_once(begins).unwrap();
    rest.split_once(ends).unwrap().0
}

#[test]
fn guide_shows_the_error_of_its_file_with_a_misspelled_window() {
    let file = block("```toml\n", "```\n");
    toml(file).unwrap();

    let wrong = file.replace("\"1000/hour\"", "\"1000/houre\"");
    let error = toml(&wrong).unwrap_err().to_string();
    // The tests read the file under another name, and `check` adds a line with the count.
    let shown = block("```text\n", "\n```\n").replace("limits.toml", "policy.toml");
    let (shown, count) = shown.rsplit_once("\n\n").unwrap();
    assert_eq!(count, "1 problem in policy.toml");
    assert_eq!(error, shown);
}
