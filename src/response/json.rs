//! JSON documents of denials.

use bytes::Bytes;
use serde::Serialize;

/// Larger than most documents, so that the buffer is allocated once.
const CAPACITY: usize = 512;

const DEL: u8 = 0x7f;

/// Serializes a document without whitespace. Escapes `<` and DEL in addition to what JSON requires,
/// so that a document can be embedded in an HTML page or a log.
pub(super) fn to_json(document: &impl Serialize) -> Bytes {
    let mut body = Vec::with_capacity(CAPACITY);
    // Writing to a `Vec` does not fail, and documents have no maps with other keys than strings.
    let written = serde_json::to_writer(&mut body, document);
    debug_assert!(written.is_ok(), "{written:?}");
    if memchr::memchr2(b'<', DEL, &body).is_some() {
        body = escape(&body);
    }
    Bytes::from(body)
}

/// Replaces bytes that occur only within strings of a document.
#[cold]
fn escape(document: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(2 * document.len());
    for byte in document {
        match byte {
            b'<' => escaped.extend_from_slice(br"\u003c"),
            &DEL => escaped.extend_from_slice(br"\u007f"),
            other => escaped.push(*other),
        }
    }
    escaped
}
