//! Paths that somebody may take for another one.

use std::borrow::Cow;

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

/// The path without slashes too many: at its end, where a layer further in may take them off before
/// it routes, or one after the other, of which axum loses one where a service is nested. `None` if
/// there are none.
pub(super) fn trimmed(path: &str) -> Option<Cow<'_, str>> {
    if path == "/" || !(path.ends_with('/') || path.contains("//")) {
        return None;
    }
    let path = path.trim_end_matches('/');
    if path.is_empty() {
        return Some(Cow::Borrowed("/"));
    }
    if !path.contains("//") {
        return Some(Cow::Borrowed(path));
    }
    let mut single = String::with_capacity(path.len());
    for letter in path.chars() {
        if letter != '/' || !single.ends_with('/') {
            single.push(letter);
        }
    }
    Some(Cow::Owned(single))
}

/// The path with its segments decoded, as handlers see them, if it is encoded at all.
pub(super) fn decoded(path: &str) -> Option<String> {
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
            // A slash that is encoded separates nothing.
            Some(octet) if octet != b'/' => {
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
    use super::{is_plain, trimmed};

    #[test]
    fn slashes_too_many() {
        for (path, expected) in [
            ("/", None),
            ("/a/b", None),
            ("", None),
            ("//", Some("/")),
            ("/a/", Some("/a")),
            ("//a", Some("/a")),
            ("/a//b", Some("/a/b")),
            ("///a///b///", Some("/a/b")),
            ("/ü//é/", Some("/ü/é")),
        ] {
            assert_eq!(trimmed(path).as_deref(), expected, "{path}");
            assert_eq!(is_plain(path), expected.is_none(), "{path}");
        }
        assert!(!is_plain("/%61"));
    }
}
