//! Every code block has a language that a test checks, and every policy file on a page is valid.

use super::manifest::{self, Manifest};
use super::page::{Block, Page, pages};

/// Languages, each with the test that checks its blocks. A new language needs a test.
const CHECKED_BY: &[(&str, &str)] = &[
    ("", "rustdoc runs them: in guides, the default is Rust"),
    ("rust", "rustdoc runs them"),
    ("no_run", "rustdoc builds them"),
    ("ignore", "client::sockets has the same lines"),
    ("sh", "docs::commands"),
    ("console", "docs::commands"),
    ("toml", "this test"),
    ("http", "docs::commands, examples::readme"),
    ("text", "pictures and messages have tests of their own"),
    ("js", "code of other projects, which is not checked"),
];

#[test]
fn every_language_of_a_block_is_checked() {
    let mut invalid = Vec::new();
    for page in pages() {
        for block in page.blocks() {
            let is_known = CHECKED_BY.iter().any(|(known, _)| block.language == *known);
            let is_rust = block.language.is_empty() && !page.path.starts_with("src/docs/");
            if !is_known || is_rust {
                invalid.push(format!(
                    "{}:{}: {:?}",
                    page.path, block.line, block.language
                ));
            }
        }
    }
    assert!(invalid.is_empty(), "no test checks\n{}", invalid.join("\n"));
}

/// Returns the error in a TOML block, or `None` if it is valid.
fn invalid(block: &Block) -> Option<String> {
    if manifest::is_manifest(&block.text) {
        return Manifest::of_the_library().error_in(&block.text);
    }
    let source = tollgate::config::Source::toml(&*block.text);
    let read = source.variables([("JWT_SECRET", "any")]).read();
    read.err().map(|error| error.to_string())
}

#[test]
fn every_policy_file_on_a_page_is_valid() {
    let mut problems = Vec::new();
    let mut read = 0;
    for page in pages() {
        let blocks = page.blocks().into_iter();
        for block in blocks.filter(|block| block.language == "toml") {
            read += 1;
            if let Some(why) = invalid(&block) {
                problems.push(format!("{}:{}: {why}", page.path, block.line));
            }
        }
    }
    assert!(read >= 5, "only {read} files are shown");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn invalid_files_are_detected() {
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
        assert!(invalid(&block(text)).is_some(), "{text}");
    }
    assert!(invalid(&block("[global]\nauthenticated = '1/houre'")).is_some());
}

/// Returns the policy file of a page, to which its commands refer.
pub(super) fn policy_of(page: &Page) -> Option<String> {
    let mut files = page.blocks_in("toml").into_iter();
    files.rfind(|text| !manifest::is_manifest(text))
}
