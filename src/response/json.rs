//! JSON documents of denials.

use std::io;

use bytes::Bytes;
use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};

/// Larger than most documents, so that the buffer is allocated once.
const CAPACITY: usize = 512;

/// Serializes a document without whitespace.
pub(super) fn to_json(document: &impl Serialize) -> Bytes {
    let mut body = Vec::with_capacity(CAPACITY);
    let mut serializer = Serializer::with_formatter(&mut body, HtmlSafe);
    // Writing to a `Vec` does not fail, and documents have no maps with other keys than strings.
    let written = document.serialize(&mut serializer);
    debug_assert!(written.is_ok(), "{written:?}");
    Bytes::from(body)
}

/// Escapes `<` and DEL in addition, so that a document can be embedded in an HTML page or a log.
struct HtmlSafe;

impl Formatter for HtmlSafe {
    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let is_special = |byte: u8| byte == b'<' || byte == 0x7f;
        // Without an early exit, so that the compiler vectorizes the search.
        if !fragment
            .bytes()
            .fold(false, |found, byte| found | is_special(byte))
        {
            return writer.write_all(fragment.as_bytes());
        }
        for byte in fragment.bytes() {
            if is_special(byte) {
                self.write_char_escape(writer, CharEscape::AsciiControl(byte))?;
            } else {
                writer.write_all(&[byte])?;
            }
        }
        Ok(())
    }
}
