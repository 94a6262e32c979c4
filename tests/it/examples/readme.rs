//! The README shows the example, and what it answers.

use super::process::Example;
use super::quickstart::commands;
use crate::curl::{assert_is_shown, replay};
use crate::docs::page::Page;

const QUICKSTART: &str = include_str!("../../../examples/quickstart.rs");

#[test]
fn its_program_is_the_example() {
    let shown = &Page::read("README.md").blocks_in("rust")[0];
    assert!(shown.len() > 500, "hardly a program:\n{shown}");
    assert!(QUICKSTART.contains(shown), "not in the example:\n{shown}");
}

#[tokio::test]
async fn its_answers_are_those_of_the_example() {
    let mut example = Example::start("quickstart", &[]).await;
    let shown = Page::read("README.md").blocks_in("http");
    assert_eq!(shown.len(), 2);
    for (command, shown) in commands::<2>(&mut example).await.iter().zip(shown) {
        let answers = replay(example.address(), command).await;
        assert_is_shown(answers.last().unwrap(), &shown);
    }
}
