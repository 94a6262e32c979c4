//! Links and file names on pages point to existing targets.

use std::path::Path;

use super::page::{Page, pages};
use crate::support::root;

/// Returns whether rustdoc renders the page. Such a page has no files next to it.
fn is_guide(page: &Page) -> bool {
    page.path.starts_with("src/docs/")
}

/// Returns the error of a link, or `None` if it is valid.
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
        // rustdoc resolves items, but does not check the part after `#`.
        let guide = item.strip_prefix("docs::");
        return guide.and_then(|guide| {
            let guide = Page::read(&format!("src/docs/{guide}.md"));
            missing_anchor(&guide, anchor)
        });
    }
    if path.is_empty() {
        return missing_anchor(page, anchor);
    }
    if is_guide(page) {
        return Some("pages that rustdoc renders cannot link to files".to_owned());
    }
    let target_file = Path::new(&page.path).parent().unwrap().join(path);
    if !root().join(&target_file).exists() {
        return Some("there is no such file".to_owned());
    }
    let is_page = target_file.extension().is_some_and(|kind| kind == "md");
    anchor.and_then(|anchor| {
        assert!(is_page, "{target}: only pages have headings");
        missing_anchor(&Page::read(target_file.to_str().unwrap()), Some(anchor))
    })
}

fn missing_anchor(page: &Page, anchor: Option<&str>) -> Option<String> {
    let anchor = anchor?;
    let exists = page.anchors().iter().any(|known| known == anchor);
    (!exists).then(|| format!("{} has no heading `#{anchor}`", page.path))
}

#[test]
fn every_link_has_a_target() {
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
fn broken_links_are_detected() {
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

/// Paths in backticks are not links, and are checked as well.
#[test]
fn named_files_exist() {
    let directories = [
        "assets/",
        "benches/",
        "cli/",
        "examples/",
        "schema/",
        "scripts/",
        "src/",
        "tests/",
    ];
    // These two pages name files of other projects.
    let excluded = ["src/docs/compare.md", "src/docs/migrating.md"];
    let mut wrong = Vec::new();
    let mut seen = 0;
    let ours = pages().into_iter();
    for page in ours.filter(|page| !excluded.contains(&&*page.path)) {
        for (line, span) in page.spans() {
            let is_path = directories
                .iter()
                .any(|directory| span.starts_with(directory));
            if is_path && !span.contains([' ', '*', '{', '…']) {
                seen += 1;
                if !root().join(&span).exists() {
                    wrong.push(format!("{}:{line}: {span}", page.path));
                }
            }
        }
    }
    assert!(seen > 20, "only {seen} files are named");
    assert!(wrong.is_empty(), "missing files:\n{}", wrong.join("\n"));
}
