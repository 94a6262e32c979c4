//! Wording that the style guide rules out, in comments, strings and identifiers.

use super::allowed::Counts;
use super::{TextFile, text_file, text_files};
use crate::support::root;

/// Words and phrases. Each form is listed, since only whole words are compared.
#[rustfmt::skip]
const RULED_OUT: &[&str] = &[
    // A person as the subject.
    "whoever", "whomever", "nobody", "somebody", "everybody", "anybody", "those who", "one who",
    "he", "him", "his", "himself", "she", "her", "hers", "herself", "whom",
    "who comes", "who leaves", "who waits",
    // Speech for what a component does.
    "tell", "telling", "told", "tells", "say", "saying", "says", "ask", "asks", "asked", "knows", "speak for", "speaks for",
    "keeps quiet",
    // Words that the glossary replaces.
    "turned away", "turn away", "turns away", "turn back", "turned back",
    "give back", "gives back", "gave back", "given back", "giving back", "forgive", "forgives",
    "judge", "judges", "judged", "verdict", "verdicts", "refusal", "refusals",
    "standing", "standings", "in force", "trial", "trials",
    "desk", "desks", "clerk", "clerks", "parcel", "parcels", "seat", "seats", "bell", "bells", "shelf", "shelves", "ticket", "tickets",
    "lane", "lanes", "trouble", "nonsense", "figures", "tally", "thinned", "thinning",
    "remembered", "remembers", "calmly", "crowd", "crowds", "errand", "errands", "keeper",
    "keepers",
];

/// Counted for a comment that begins with these words.
const THE_SAME: &str = "The same";

const DIRECTORIES: [&str; 8] = [
    ".github", "benches", "cli", "examples", "fuzz", "scripts", "src", "tests",
];

const EXTENSIONS: [&str; 8] = ["css", "html", "js", "lua", "md", "rs", "toml", "yml"];

fn files() -> Vec<TextFile> {
    let mut files = text_files(&DIRECTORIES);
    files.retain(|file| {
        (file.has_extension(&EXTENSIONS) || file.path.starts_with("scripts/"))
            && !file.path.starts_with("tests/it/style/")
    });
    // Not the changelog: it lists the old names of renamed items.
    for name in ["CONTRIBUTING.md", "Cargo.toml", "README.md", "deny.toml"] {
        let path = root().join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        files.push(text_file(&path, text));
    }
    files
}

/// Returns the comment of a line without its marker.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let markers = ["///", "//!", "//", "--", "# ", "/*", "* "];
    markers
        .iter()
        .find_map(|marker| line.strip_prefix(marker))
        .map(str::trim_start)
}

/// Returns the words in lower case, each after a space.
///
/// Identifiers are split into their words. A phrase may continue in the next line; punctuation ends
/// it.
fn words(text: &str) -> String {
    let mut words = String::with_capacity(text.len() + text.len() / 4);
    words.push(' ');
    for line in text.lines() {
        let mut previous = ' ';
        for letter in comment(line).unwrap_or(line).chars() {
            if letter.is_alphabetic() {
                let starts_word = letter.is_uppercase() && previous.is_lowercase();
                if starts_word || !previous.is_alphabetic() {
                    separate(&mut words);
                }
                words.extend(letter.to_lowercase());
            } else if !letter.is_whitespace() && letter != '_' {
                words.push_str(" |");
            }
            previous = letter;
        }
        separate(&mut words);
    }
    separate(&mut words);
    words
}

fn separate(words: &mut String) {
    if !words.ends_with(' ') {
        words.push(' ');
    }
}

/// Counts the comments that begin with [`THE_SAME`].
fn begin_with_the_same(text: &str) -> usize {
    let mut in_comment = false;
    let mut count = 0;
    for line in text.lines() {
        let comment = comment(line);
        let begins = !in_comment && comment.is_some_and(|comment| comment.starts_with(THE_SAME));
        count += usize::from(begins);
        in_comment = comment.is_some();
    }
    count
}

pub(super) fn offenders() -> Counts {
    let mut counts = Counts::new();
    for file in files() {
        let words = words(&file.text);
        let mut note = |wording: &str, count: usize| {
            if count > 0 {
                counts.insert((file.path.clone(), wording.to_owned()), count);
            }
        };
        for wording in RULED_OUT {
            // `ASK` is a redirect of the Redis Cluster protocol.
            let is_protocol = *wording == "ask" && file.path.starts_with("src/store/redis/");
            if !is_protocol {
                note(wording, occurrences(&words, wording));
            }
        }
        if !file.has_extension(&["md"]) {
            note(THE_SAME, begin_with_the_same(&file.text));
        }
    }
    counts
}

/// Counts `wording` among words that have a space before and after each.
fn occurrences(words: &str, wording: &str) -> usize {
    let found = words.match_indices(wording);
    found
        .filter(|(start, _)| {
            words[..*start].ends_with(' ') && words[start + wording.len()..].starts_with(' ')
        })
        .count()
}

#[test]
fn whole_words_are_found_in_comments_and_identifiers() {
    let words = words("/// Those\n    /// who are told.\nfn is_told(x: NobodyElse) -> Shell {}");
    for wording in ["those who", "is told", "nobody"] {
        assert_eq!(occurrences(&words, wording), 1, "{wording} in {words}");
    }
    assert_eq!(occurrences(&words, "told"), 2);
    assert_eq!(occurrences(&words, "she"), 0);
}

#[test]
fn phrases_end_at_punctuation() {
    let words = words("those, who");
    assert_eq!(occurrences(&words, "those who"), 0);
}

#[test]
fn only_the_first_line_of_a_comment_begins_it() {
    assert_eq!(
        begin_with_the_same("/// The same as above.\nfn f() {}\n// The same"),
        2
    );
    assert_eq!(
        begin_with_the_same("// Another case.\n// The same holds here."),
        0
    );
}
