//! Blocks of code are of a kind that something looks at, and files that are shown can be read.

use super::manifest::{self, Manifest};
use super::page::{Block, Page, pages};

/// Which test checks the blocks of a language. A new language needs a test.
const LOOKED_AT: &[(&str, &str)] = &[
    ("", "rustdoc runs them: in guides, nothing is Rust"),
    ("rust", "rustdoc runs them"),
    ("no_run", "rustdoc builds them"),
    ("ignore", "client::sockets has the same lines"),
    ("sh", "docs::commands"),
    ("console", "docs::commands"),
    ("toml", "this test"),
    ("http", "docs::commands, examples::readme"),
    ("text", "pictures and messages have tests of their own"),
    ("js", "what others have: nothing of ours"),
];

#[test]
fn every_block_is_of_a_kind_that_is_looked_at() {
    let mut wrong = Vec::new();
    for page in pages() {
        for block in page.blocks() {
            let is_known = LOOKED_AT.iter().any(|(known, _)| block.language == *known);
            let is_rust = block.language.is_empty() && !page.path.starts_with("src/docs/");
            if !is_known || is_rust {
                wrong.push(format!(
                    "{}:{}: {:?}",
                    page.path, block.line, block.language
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "no test checks\n{}", wrong.join("\n"));
}

/// What is wrong with a TOML block, if anything is.
fn wrong(block: &Block) -> Option<String> {
    if manifest::is_manifest(&block.text) {
        return Manifest::of_the_library().refuses(&block.text);
    }
    let source = tollgate::config::Source::toml(&*block.text);
    let read = source.variables([("JWT_SECRET", "any")]).read();
    read.err().map(|error| error.to_string())
}

#[test]
fn every_file_that_is_shown_can_be_read() {
    let mut problems = Vec::new();
    let mut read = 0;
    for page in pages() {
        let blocks = page.blocks().into_iter();
        for block in blocks.filter(|block| block.language == "toml") {
            read += 1;
            if let Some(why) = wrong(&block) {
                problems.push(format!("{}:{}: {why}", page.path, block.line));
            }
        }
    }
    assert!(read >= 5, "only {read} files are shown");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_wrong_file_is_noticed() {
    let block = |text: &str| Block {
        language: "toml".to_owned(),
        text: text.to_owned(),
        line: 1,
    };
    for text in [
        "[dependencies]\ntollgate = '7'",
        "[dependencies]\ntollgate = { version = '0.1', features = ['raddis'] }",
        "[dependencies]\nno-such-crate = '1'",
    ] {
        assert!(wrong(&block(text)).is_some(), "{text}");
    }
    assert!(wrong(&block("[global]\nauthenticated = '1/houre'")).is_some());
}

/// The settings of a page: the policy file that its commands are about.
pub(super) fn policy_of(page: &Page) -> Option<String> {
    let mut files = page.blocks_in("toml").into_iter();
    files.rfind(|text| !manifest::is_manifest(text))
}
