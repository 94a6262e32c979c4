//! Style rules that a program can check: ruled-out wording, type names that are defined twice,
//! file sizes.
//!
//! `allowed.txt` lists the offenders that are left, as counts. Counts may only shrink:
//! - A count above the listed one fails.
//! - With `STYLE_EXACT=1`, a count below the listed one fails too.
//! - `STYLE_BLESS=1` rewrites the list, unless the total of an entry would grow. Entries of a moved
//!   file move with it.

mod allowed;
mod sizes;
mod type_names;
mod wording;

use std::fs;
use std::path::Path;

use crate::support::root;

/// One file below the root of the repository.
struct TextFile {
    /// Path from the root, with `/`.
    path: String,
    text: String,
}

impl TextFile {
    fn has_extension(&self, extensions: &[&str]) -> bool {
        let extension = Path::new(&self.path).extension();
        extension.is_some_and(|extension| extensions.iter().any(|known| extension == *known))
    }
}

/// Returns the text files below `directories`, ordered by path. Skips build output and vendored scripts.
fn text_files(directories: &[&str]) -> Vec<TextFile> {
    let mut files = Vec::new();
    for directory in directories {
        collect(&root().join(directory), &mut files);
    }
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    files
}

fn collect(directory: &Path, files: &mut Vec<TextFile>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !["target", "corpus", "artifacts"]
                .iter()
                .any(|name| path.ends_with(name))
            {
                collect(&path, files);
            }
        } else if !path.to_str().is_some_and(|path| path.ends_with(".min.js"))
            && let Ok(text) = fs::read_to_string(&path)
        {
            files.push(text_file(&path, text));
        }
    }
}

fn text_file(path: &Path, text: String) -> TextFile {
    let relative = path.strip_prefix(root()).unwrap();
    let path = relative.to_str().unwrap().replace('\\', "/");
    TextFile { path, text }
}

#[test]
fn offenders_only_shrink() {
    let mut found = wording::offenders();
    found.extend(type_names::offenders());
    allowed::compare(&found);
}

/// Offenders are left only in the guides. The contributor's guide has none.
#[test]
fn only_guides_have_offenders() {
    for (path, wording) in wording::offenders()
        .keys()
        .chain(type_names::offenders().keys())
    {
        let is_guide = path.starts_with("src/docs/") && path != "src/docs/design.md";
        assert!(is_guide, "{path}: {wording}");
    }
}
