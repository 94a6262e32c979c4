//! Paths that somebody may take for another one.

/// Whether nobody could take the path for another one: nothing in it is encoded, and no slash is
/// one too many.
#[inline]
pub(super) fn is_plain(path: &str) -> bool {
    let mut before = 0;
    for byte in path.bytes() {
        if byte == b'%' || (byte == b'/' && before == b'/') {
            return false;
        }
        before = byte;
    }
    before != b'/' || path.len() == 1
}

/// How many doubled slashes of a path are looked at one by one. With more, all stay or all go.
const ONE_BY_ONE: usize = 4;

/// What others may take the path for, if it has slashes too many: each spelling is shown in turn.
///
/// Layers further in take slashes off the end before they route, and all but one off the
/// beginning, or merge all that are doubled; axum loses one of two wherever a service is nested,
/// and only there. What is left of the others still counts: between two slashes there is an empty
/// segment, which a parameter takes.
pub(super) fn each_other_spelling(path: &str, mut show: impl FnMut(&str)) {
    let bare = match path.trim_end_matches('/') {
        "" => "/",
        bare => bare,
    };
    // With two at the beginning, this is one of the spellings below.
    let lone = match bare.trim_start_matches('/') {
        rest if bare.starts_with("///") => Some(&bare[bare.len() - rest.len() - 1..]),
        _ => None,
    };
    let own = (bare != path).then_some(path);
    for path in own.into_iter().chain([bare]).chain(lone) {
        let doubled = doubled_slashes(path);
        if own != Some(path) {
            show(path);
        }
        if doubled.is_empty() {
            continue;
        }
        show(&merged(path));
        for chosen in 1..1_u32 << doubled.len().min(ONE_BY_ONE) {
            let mut spelled = String::with_capacity(path.len());
            let mut from = 0;
            for (number, at) in doubled.iter().take(ONE_BY_ONE).enumerate() {
                if chosen & 1 << number != 0 {
                    spelled.push_str(&path[from..*at]);
                    from = at + 1;
                }
            }
            spelled.push_str(&path[from..]);
            show(&spelled);
        }
    }
}

/// Where two slashes or more begin.
fn doubled_slashes(path: &str) -> Vec<usize> {
    let is_slash = |at: usize| path.as_bytes().get(at) == Some(&b'/');
    let begins = |at: &usize| is_slash(*at) && is_slash(at + 1) && !(*at > 0 && is_slash(at - 1));
    (0..path.len()).filter(begins).collect()
}

/// The path with one slash wherever there are several.
fn merged(path: &str) -> String {
    let mut single = String::with_capacity(path.len());
    for letter in path.chars() {
        if letter != '/' || !single.ends_with('/') {
            single.push(letter);
        }
    }
    single
}

/// What the path may mean to somebody who does not match it as it is written: each is shown in
/// turn.
///
/// Who serves files decodes a path, also its slashes, and leaves out segments that say `.`; who
/// passes it on may resolve `..` as well. And there are layers that put a slash at the end.
pub(super) fn each_meaning(path: &str, mut show: impl FnMut(&str)) {
    each_spelling_of(path, &mut show);
    for slashes in [false, true] {
        if let Some(path) = decoded(path, slashes) {
            each_spelling_of(&path, &mut show);
        }
    }
}

/// Few, since a path may be long and this is for whatever nobody has a rule for.
fn each_spelling_of(path: &str, mut show: impl FnMut(&str)) {
    let resolved = resolved(path);
    show(path);
    show(&resolved);
    show(resolved.trim_end_matches('/'));
    let mut single = merged(&resolved);
    if !single.ends_with('/') {
        single.push('/');
    }
    show(&single);
    show(single.trim_end_matches('/'));
}

/// The path without segments that say `.`, and without those that a `..` takes back.
fn resolved(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

/// The path with its segments decoded, as handlers see them, if it is encoded at all; with what
/// separates them, if `slashes` are to be decoded, too.
fn decoded(path: &str, slashes: bool) -> Option<String> {
    if !path.contains('%') {
        return None;
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |digit: &u8| char::from(*digit).to_digit(16);
        let octet = match (first, tail) {
            (b'%', [high, low, ..]) => hex(high).zip(hex(low)),
            _ => None,
        };
        match octet.and_then(|(high, low)| u8::try_from(high << 4 | low).ok()) {
            // To most, a slash that is encoded separates nothing.
            Some(octet) if slashes || octet != b'/' => {
                bytes.push(octet);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{each_meaning, each_other_spelling, is_plain, resolved};

    fn spellings(path: &str) -> Vec<String> {
        let mut spellings = Vec::new();
        each_other_spelling(path, |spelling| {
            let spelling = spelling.to_owned();
            if spelling != path && !spellings.contains(&spelling) {
                spellings.push(spelling);
            }
        });
        spellings.sort();
        spellings
    }

    #[test]
    fn slashes_too_many() {
        for (path, expected) in [
            ("/", &[][..]),
            ("/a/b", &[]),
            ("//", &["/"]),
            ("/a/", &["/a"]),
            ("//a", &["/a"]),
            ("/a//b", &["/a/b"]),
            ("/a//b/", &["/a//b", "/a/b", "/a/b/"]),
            ("/a//b//c", &["/a//b/c", "/a/b//c", "/a/b/c"]),
            ("/a///b", &["/a//b", "/a/b"]),
            ("///a//b", &["///a/b", "//a//b", "//a/b", "/a//b", "/a/b"]),
            ("/ü//é", &["/ü/é"]),
        ] {
            assert_eq!(spellings(path), expected, "{path}");
            assert_eq!(is_plain(path), expected.is_empty(), "{path}");
        }
        assert!(!is_plain("/%61"));
    }

    #[test]
    fn segments_that_say_nothing() {
        for (path, expected) in [
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("/./a", "/a"),
            ("/a/.", "/a"),
            ("/a/./b/../c", "/a/c"),
            ("/../../a", "/a"),
            ("/a//b/", "/a//b/"),
            ("/.a/b..", "/.a/b.."),
        ] {
            assert_eq!(resolved(path), expected, "{path}");
        }
    }

    #[test]
    fn whatever_it_may_mean() {
        for path in [
            "/a/b/",
            "/a/./b",
            "//a/b",
            "/%61/b",
            "/%61/b/",
            "/a/%2e/b",
            "/a%2Fb",
            "/a/c/../b",
            "/a/%2E%2e/a/b",
        ] {
            let mut is_found = false;
            each_meaning(path, |meaning| is_found |= meaning == "/a/b");
            assert!(is_found, "{path}");
        }
        let mut is_found = false;
        each_meaning("/a/b", |meaning| is_found |= meaning == "/a/b/");
        assert!(is_found);
    }

    #[test]
    fn however_many_slashes_there_are_few_spellings() {
        let path = "//a".repeat(10_000) + "/";
        assert_eq!(spellings(&path).len(), 2 * 16 + 1);
        assert!(spellings(&path).contains(&"/a".repeat(10_000)));
    }
}
