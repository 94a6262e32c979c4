//! The README shows the example, and what it answers.

const README: &str = include_str!("../../../README.md");
const QUICKSTART: &str = include_str!("../../../examples/quickstart.rs");

/// The first block of this language.
fn block(fence: &str) -> &'static str {
    let (_, rest) = README.split_once(&format!("```{fence}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn its_program_is_the_example() {
    let shown = block("rust");
    assert!(shown.len() > 500, "hardly a program:\n{shown}");
    assert!(QUICKSTART.contains(shown), "not in the example:\n{shown}");
}
