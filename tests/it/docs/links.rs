//! Whatever a page points at is there.

use std::path::Path;

use super::page::{Page, pages};
use crate::support::root;

/// Pages that rustdoc renders: there is no file next to them then.
fn is_guide(page: &Page) -> bool {
    page.path.starts_with("src/docs/")
}

/// What is wrong with a link, if anything is.
fn broken(page: &Page, target: &str) -> Option<String> {
    if target.starts_with("https://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (target, None),
    };
    if let Some(item) = path.strip_prefix("crate::") {
        if !is_guide(page) {
            return Some("only rustdoc resolves items".to_owned());
        }
        // Items are for rustdoc to find; it does not look at what comes after `#`.
        let guide = item.strip_prefix("docs::");
        return guide.and_then(|guide| {
            let guide = Page::read(&format!("src/docs/{guide}.md"));
            without_anchor(&guide, anchor)
        });
    }
    if path.is_empty() {
        return without_anchor(page, anchor);
    }
    if is_guide(page) {
        return Some("there are no files next to what rustdoc renders".to_owned());
    }
    let beside = Path::new(&page.path).parent().unwrap().join(path);
    if !root().join(&beside).exists() {
        return Some("there is no such file".to_owned());
    }
    let is_page = beside.extension().is_some_and(|kind| kind == "md");
    anchor.and_then(|anchor| {
        assert!(is_page, "{target}: only pages have headings");
        without_anchor(&Page::read(beside.to_str().unwrap()), Some(anchor))
    })
}

fn without_anchor(page: &Page, anchor: Option<&str>) -> Option<String> {
    let anchor = anchor?;
    let is_there = page.anchors().iter().any(|known| known == anchor);
    (!is_there).then(|| format!("{} has no heading `#{anchor}`", page.path))
}

#[test]
fn every_link_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut followed = 0;
    for page in pages() {
        for (line, target) in page.links() {
            followed += 1;
            if let Some(why) = broken(&page, &target) {
                wrong.push(format!("{}:{line}: {target}: {why}", page.path));
            }
        }
    }
    assert!(followed > 200, "only {followed} links were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_broken_link_is_noticed() {
    let (readme, guide) = (Page::read("README.md"), Page::read("src/docs/faq.md"));
    for target in [
        "tests/it/no_such_test.rs",
        "src/docs/faq.md#no-such-question",
        "#nothing",
        "crate::Quota",
        "http://example.com",
    ] {
        assert!(broken(&readme, target).is_some(), "{target}");
    }
    for target in ["proxies.md", "crate::docs::proxies#nothing", "#nothing"] {
        assert!(broken(&guide, target).is_some(), "{target}");
    }
    assert_eq!(broken(&guide, "crate::docs::proxies#which-header"), None);
    assert_eq!(broken(&readme, "src/docs/faq.md#is-it-fast"), None);
}

/// Paths in backticks are no links, and go stale as easily.
#[test]
fn files_that_are_named_are_there() {
    let rooms = [
        "assets/",
        "benches/",
        "cli/",
        "examples/",
        "schema/",
        "scripts/",
        "src/",
        "tests/",
    ];
    // These two name the files of others, too.
    let of_others = ["src/docs/compare.md", "src/docs/migrating.md"];
    let mut wrong = Vec::new();
    let mut seen = 0;
    let ours = pages().into_iter();
    for page in ours.filter(|page| !of_others.contains(&&*page.path)) {
        for (line, span) in page.spans() {
            let is_path = rooms.iter().any(|room| span.starts_with(room));
            if is_path && !span.contains([' ', '*', '{', '…']) {
                seen += 1;
                if !root().join(&span).exists() {
                    wrong.push(format!("{}:{line}: {span}", page.path));
                }
            }
        }
    }
    assert!(seen > 20, "only {seen} files are named");
    assert!(wrong.is_empty(), "not there:\n{}", wrong.join("\n"));
}
