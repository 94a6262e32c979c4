//! Parser for the parts of Markdown that tests read: code blocks, inline code, links, headings.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::root;

/// A Markdown file, or the module documentation of an example.
pub(crate) struct Page {
    /// Relative to the root of the project, with `/` on every system.
    pub(crate) path: String,
    text: String,
}

/// A fenced code block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Such as `sh` or `rust,ignore`. May be empty.
    pub(crate) language: String,
    pub(crate) text: String,
    /// Line of the opening fence.
    pub(crate) line: usize,
}

impl Page {
    /// Reads a Markdown file.
    pub(crate) fn read(path: &str) -> Self {
        let text = fs::read_to_string(root().join(path));
        Self {
            path: path.to_owned(),
            text: text.unwrap_or_else(|error| panic!("{path}: {error}")),
        }
    }

    /// Reads the module documentation of an example.
    fn of_example(path: &str) -> Self {
        let page = Self::read(path);
        let front = page.text.lines().map_while(|line| {
            let line = line.strip_prefix("//!")?;
            Some(line.strip_prefix(' ').unwrap_or(line))
        });
        let text = front.collect::<Vec<_>>().join("\n");
        Self { text, ..page }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text without code blocks and tables.
    pub(crate) fn prose(&self) -> String {
        let paragraphs = self.paragraphs().into_iter().map(|(_, text)| text);
        paragraphs
            .filter(|text| !text.starts_with('|'))
            .collect::<Vec<_>>()
            .join("\n")
    }

    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut open: Option<Block> = None;
        for (number, line) in (1..).zip(self.text.lines()) {
            let fence = line.trim_start().strip_prefix("```");
            match (&mut open, fence) {
                (None, Some(language)) => {
                    open = Some(Block {
                        language: language.trim().to_owned(),
                        text: String::new(),
                        line: number,
                    });
                }
                (Some(_), Some(rest)) => {
                    assert_eq!(rest, "", "{}:{number}: a fence in a block", self.path);
                    blocks.extend(open.take());
                }
                (Some(block), None) => {
                    block.text += line;
                    block.text.push('\n');
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: unclosed block", self.path);
        blocks
    }

    /// Returns the texts of all blocks in this language.
    pub(crate) fn blocks_in(&self, language: &str) -> Vec<String> {
        let blocks = self.blocks().into_iter();
        let wanted = blocks.filter(|block| block.language == language);
        wanted.map(|block| block.text).collect()
    }

    /// Returns all paragraphs outside of blocks, each with the line in which it begins.
    fn paragraphs(&self) -> Vec<(usize, String)> {
        let mut paragraphs = vec![(1, String::new())];
        let mut is_in_block = false;
        for (number, line) in (1..).zip(self.text.lines()) {
            let is_fence = line.trim_start().starts_with("```");
            is_in_block ^= is_fence;
            if is_fence || is_in_block || line.trim().is_empty() || line.starts_with('|') {
                paragraphs.push((number, String::new()));
            }
            if !is_fence && !is_in_block {
                let (_, text) = paragraphs.last_mut().unwrap();
                *text += line;
                text.push('\n');
            }
        }
        paragraphs
    }

    /// Returns inline code, with the line in which its paragraph begins.
    pub(crate) fn spans(&self) -> Vec<(usize, String)> {
        let mut spans = Vec::new();
        for (line, paragraph) in self.paragraphs() {
            let parts: Vec<&str> = paragraph.split('`').collect();
            assert_eq!(
                parts.len() % 2,
                1,
                "{}:{line}: a backtick is missing",
                self.path
            );
            let within = parts.into_iter().skip(1).step_by(2);
            let on_one_line =
                within.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "));
            spans.extend(on_one_line.map(|span| (line, span)));
        }
        spans
    }

    /// Returns the targets of links: `[text](target)`, `![text](target)` and `[text]: target`.
    pub(crate) fn links(&self) -> Vec<(usize, String)> {
        let mut links = Vec::new();
        for (line, paragraph) in self.paragraphs() {
            let prose: String = paragraph
                .split('`')
                .step_by(2)
                .collect::<Vec<_>>()
                .join("`");
            let inline = prose.split("](").skip(1).filter_map(|rest| {
                let target = rest.split_once(')')?.0;
                Some(target.split_whitespace().next().unwrap_or_default())
            });
            links.extend(inline.map(|target| (line, target.to_owned())));
            let defined = prose.lines().filter_map(|line| {
                let (name, target) = line.strip_prefix('[')?.split_once("]: ")?;
                (!name.starts_with('^')).then(|| target.trim().to_owned())
            });
            links.extend(defined.map(|target| (line, target)));
        }
        links
    }

    /// Returns the anchors of all headings, as GitHub and rustdoc generate them.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let paragraphs = self.paragraphs();
        let lines = paragraphs.iter().flat_map(|(_, text)| text.lines());
        let headings = lines.filter_map(|line| {
            let title = line.trim_start_matches('#');
            (title.len() < line.len()).then_some(title.trim())
        });
        headings
            .map(|title| {
                let kept = title.chars().filter_map(|letter| match letter {
                    ' ' => Some('-'),
                    '-' | '_' => Some(letter),
                    _ => letter.is_alphanumeric().then_some(letter),
                });
                kept.collect::<String>().to_lowercase()
            })
            .collect()
    }
}

/// Returns every Markdown file of the project.
pub(crate) fn pages() -> Vec<Page> {
    let mut found = Vec::new();
    collect(root(), &mut found);
    found.sort();
    assert!(found.len() > 20, "only {found:?}");
    found.iter().map(|path| Page::read(path)).collect()
}

/// Returns the module documentation of all examples: single files and packages.
pub(crate) fn examples() -> Vec<Page> {
    let files = fs::read_dir(root().join("examples")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let paths = names.filter_map(|name| {
        let path = format!("examples/{name}");
        let package = format!("{path}/src/main.rs");
        if Path::new(&path).extension() == Some("rs".as_ref()) {
            Some(path)
        } else {
            root().join(&package).exists().then_some(package)
        }
    });
    let mut paths: Vec<String> = paths.collect();
    paths.sort();
    assert!(paths.len() > 8, "only {paths:?}");
    paths.iter().map(|path| Page::of_example(path)).collect()
}

fn collect(directory: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_ours = name == ".github" || !(name.starts_with('.') || name == "target");
        if path.is_dir() && is_ours {
            collect(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "md") {
            let relative = path.strip_prefix(root()).unwrap();
            found.push(relative.to_str().unwrap().replace('\\', "/"));
        }
    }
}
