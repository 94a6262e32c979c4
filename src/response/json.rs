//! JSON, written straight into one buffer: keys are known, values are few.

use std::fmt;

use bytes::Bytes;

use crate::calendar;
use crate::headers::{Decimal, two_digits};

/// A JSON document in the making.
pub(super) struct Json(Vec<u8>);

impl Json {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// What is JSON already.
    #[inline]
    pub(super) fn raw(&mut self, json: &str) -> &mut Self {
        self.0.extend_from_slice(json.as_bytes());
        self
    }

    /// What needs no escaping, in quotes.
    #[inline]
    pub(super) fn plain(&mut self, text: &str) -> &mut Self {
        self.raw("\"").raw(text).raw("\"")
    }

    /// A string.
    pub(super) fn string(&mut self, text: &str) -> &mut Self {
        self.raw("\"");
        self.escape(text);
        self.raw("\"")
    }

    /// A string that is written bit by bit.
    pub(super) fn written(
        &mut self,
        write: impl FnOnce(&mut Inside<'_>) -> fmt::Result,
    ) -> &mut Self {
        self.raw("\"");
        // The buffer takes everything.
        let _ = write(&mut Inside(self));
        self.raw("\"")
    }

    #[inline]
    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        self.0.extend_from_slice(Decimal::new(number).as_bytes());
        self
    }

    /// An instant of so many seconds and milliseconds since the epoch:
    /// `"2025-10-30T14:00:00.000Z"`.
    pub(super) fn time(&mut self, secs: u64, millis: u64) -> &mut Self {
        let mut text = *b"\"0000-00-00T00:00:00.000Z\"";
        let (year, month, day) = calendar::date(secs / 86_400);
        let (hour, minute, second) = (secs / 3_600 % 24, secs / 60 % 60, secs % 60);
        let pairs = [
            (1, year / 100),
            (3, year),
            (6, month),
            (9, day),
            (12, hour),
            (15, minute),
            (18, second),
            (21, millis / 10),
        ];
        for (at, number) in pairs {
            [text[at], text[at + 1]] = two_digits(number);
        }
        text[23] = two_digits(millis)[1];
        self.0.extend_from_slice(&text);
        self
    }

    /// Most texts need no escaping; to see it is cheaper than to go byte by byte.
    #[inline]
    fn escape(&mut self, text: &str) {
        let bytes = text.as_bytes();
        // No early end, so that many bytes are looked at in one go.
        if bytes
            .iter()
            .fold(false, |any, byte| any | is_special(*byte))
        {
            self.escape_special(bytes);
        } else {
            self.0.extend_from_slice(bytes);
        }
    }

    #[cold]
    fn escape_special(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'"' => self.0.extend_from_slice(b"\\\""),
                b'\\' => self.0.extend_from_slice(b"\\\\"),
                b'\n' => self.0.extend_from_slice(b"\\n"),
                b'\r' => self.0.extend_from_slice(b"\\r"),
                b'\t' => self.0.extend_from_slice(b"\\t"),
                special if is_special(*special) => {
                    const HEX: [u8; 16] = *b"0123456789abcdef";
                    let (high, low) = (usize::from(special >> 4), usize::from(special & 15));
                    self.0
                        .extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[high], HEX[low]]);
                }
                other => self.0.push(*other),
            }
        }
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.0.into()
    }
}

/// What cannot stand in a string as it is; and `<`, so that the document can stand in a page.
const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\' || byte == b'<' || byte == 0x7f
}

/// The inside of a string.
pub(super) struct Inside<'a>(&'a mut Json);

impl fmt::Write for Inside<'_> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.escape(text);
        Ok(())
    }
}
