//! Request paths: which of them have one reading, and which are rejected.

use std::fmt;

use percent_encoding::percent_decode;

/// Longest path that is walked, in bytes, without the query.
pub(super) const MAX_PATH_BYTES: usize = 8 * 1_024;

/// Why a request is rejected because of its path, before anything is counted.
///
/// Rejected are paths that the limiter and the application can read differently, if the policy
/// has routes and axum's `MatchedPath` does not determine the handler. `Display` is the message
/// that the caller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathRejection {
    /// A segment is `.` or `..`, raw or percent-encoded.
    DotSegment,
    /// A raw backslash, which some applications treat as a slash.
    Backslash,
    /// The path has more readings than are looked up.
    TooManyReadings,
    /// All readings together would be counted by more than 8 quotas.
    TooManyQuotas,
    /// The path is longer than 8 KiB, and has to be looked up segment by segment.
    TooLong,
}

impl PathRejection {
    /// Returns the label in metrics and events: `invalid-path` or `path-too-long`.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::TooLong => "path-too-long",
            _ => "invalid-path",
        }
    }

    /// Returns the message for the caller: what is wrong with the path, and what is allowed.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::DotSegment => {
                "The request path has a segment that is . or .. (raw or percent-encoded). \
                 Resolve dot segments before sending the request."
            }
            Self::Backslash => {
                "The request path has a backslash. Use / between segments, or send %5C."
            }
            Self::TooManyReadings => {
                "The request path has too many empty segments or encoded slashes. Send it with \
                 single slashes."
            }
            Self::TooManyQuotas => {
                "The request path can be read in several ways that too many limits apply to. Send \
                 it without empty segments, trailing slash or unnecessary percent-encoding."
            }
            Self::TooLong => {
                "The request path is longer than 8192 bytes. Send a shorter path, or one with \
                 single slashes and without percent-encoding."
            }
        }
    }
}

impl fmt::Display for PathRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

/// Bytes that can make a path ambiguous. One table look-up for each byte of a path.
const AMBIGUOUS: [bool; 256] = {
    let mut table = [false; 256];
    table[b'%' as usize] = true;
    table[b'/' as usize] = true;
    table[b'\\' as usize] = true;
    table
};

/// Returns whether the path has one reading: it begins with `/`, and has no percent-encoding, no
/// backslash, no empty or dot segment and no trailing slash.
#[inline]
pub(super) fn is_plain(path: &str) -> bool {
    let bytes = path.as_bytes();
    let [b'/', rest @ ..] = bytes else {
        return false;
    };
    let mut segment = 0;
    for (at, byte) in rest.iter().enumerate() {
        if AMBIGUOUS[usize::from(*byte)] {
            if *byte != b'/' || is_empty_or_dots(&rest[segment..at]) {
                return false;
            }
            segment = at + 1;
        }
    }
    rest.is_empty() || !is_empty_or_dots(&rest[segment..])
}

#[inline]
const fn is_empty_or_dots(segment: &[u8]) -> bool {
    matches!(segment, [] | [b'.'] | [b'.', b'.'])
}

/// Returns why the path cannot be walked.
pub(super) fn rejection(path: &str) -> Option<PathRejection> {
    if path.len() > MAX_PATH_BYTES {
        return Some(PathRejection::TooLong);
    }
    if path.contains('\\') {
        return Some(PathRejection::Backslash);
    }
    // An application may decode first and split afterwards, on Windows also at backslashes.
    let decoded = decode(path.as_bytes(), usize::MAX);
    let mut segments = decoded.split(|byte| matches!(byte, b'/' | b'\\'));
    segments
        .any(|segment| matches!(segment, [b'.'] | [b'.', b'.']))
        .then_some(PathRejection::DotSegment)
}

/// Percent-decodes text, and returns at most `limit` bytes of it.
pub(super) fn decode(text: &[u8], limit: usize) -> Vec<u8> {
    percent_decode(text).take(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::{MAX_PATH_BYTES, PathRejection, decode, is_plain, rejection};

    #[test]
    fn plain_paths_have_one_reading() {
        for path in [
            "/",
            "/a",
            "/a/b",
            "/.well-known/x",
            "/a/...",
            "/a.b/..c",
            "/ü",
        ] {
            assert!(is_plain(path), "{path}");
        }
        for path in [
            "", "*", "a/b", "//", "/a/", "//a", "/a//b", "/%61", "/a%2Fb", "/.", "/..", "/./a",
            "/a/..", "/a/../b", "/a\\b",
        ] {
            assert!(!is_plain(path), "{path}");
        }
    }

    #[test]
    fn dot_segments_and_backslashes_are_rejected_in_every_encoding() {
        for path in [
            "/.",
            "/..",
            "/./a",
            "/a/../b",
            "/a/..",
            "/%2e",
            "/a/%2E%2e/b",
            "/a/.%2e/b",
            "/a/..%2fb",
            "/a%2f..%2Fb",
            "/a/..%5Cb",
            "/a%5c..",
        ] {
            assert_eq!(rejection(path), Some(PathRejection::DotSegment), "{path}");
        }
        for path in ["/a\\b", "/a/..\\b"] {
            assert_eq!(rejection(path), Some(PathRejection::Backslash), "{path}");
        }
        for path in [
            "/a//b/",
            "/a%5Cb",
            "/.a/b..",
            "/...",
            "/%2e%2e%2e",
            "/%252e%252e",
            "/%",
        ] {
            assert_eq!(rejection(path), None, "{path}");
        }
    }

    #[test]
    fn paths_over_8_kib_are_too_long() {
        let longest = format!("/{}", "a".repeat(MAX_PATH_BYTES - 1));
        assert_eq!(rejection(&longest), None);
        let longer = format!("{longest}/..");
        assert_eq!(rejection(&longer), Some(PathRejection::TooLong));
    }

    #[test]
    fn decoding_stops_at_its_limit() {
        assert_eq!(decode(b"%6cogin%", 9), b"login%");
        assert_eq!(decode(b"%6cogin", 3), b"log");
        assert_eq!(decode(b"%zz%4", 9), b"%zz%4");
        assert_eq!(decode(b"%ff", 9), [0xff]);
    }
}
