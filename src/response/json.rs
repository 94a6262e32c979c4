//! JSON, written straight into one buffer: keys are known, values are few.

use std::cell::Cell;

use bytes::Bytes;

use super::sink::Sink;
use crate::calendar;
use crate::headers::{Decimal, four_digits, leading_zeros, two_digits};

/// A JSON document in the making.
pub(super) struct Json {
    buffer: Vec<u8>,
}

impl Json {
    /// An empty one.
    pub(super) fn new() -> Self {
        Self {
            buffer: BUFFER.try_with(Cell::take).unwrap_or_default(),
        }
    }

    /// What is JSON already.
    #[inline]
    pub(super) fn raw(&mut self, json: &str) -> &mut Self {
        self.buffer.extend_from_slice(json.as_bytes());
        self
    }

    /// What needs no escaping, inside of a string.
    #[inline]
    pub(super) fn plain(&mut self, text: &[u8]) -> &mut Self {
        self.buffer.extend_from_slice(text);
        self
    }

    /// A string.
    pub(super) fn string(&mut self, text: &str) -> &mut Self {
        self.raw("\"");
        self.escape(text);
        self.raw("\"")
    }

    /// The inside of a string that is written bit by bit.
    pub(super) fn inside(&mut self, write: impl FnOnce(&mut Inside<'_>)) -> &mut Self {
        write(&mut Inside(self));
        self
    }

    #[inline]
    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        match number {
            ..10_000 => self.begin_number(number),
            10_000..100_000_000 => {
                self.begin_number(number / 10_000);
                self.buffer.extend_from_slice(&four_digits(number));
            }
            _ => self
                .buffer
                .extend_from_slice(Decimal::new(number).as_bytes()),
        }
        self
    }

    /// The first digits of a number, four at most. All four are written, which is less work than
    /// to write as many as there are.
    #[inline]
    fn begin_number(&mut self, number: u64) {
        let zeros = leading_zeros(number);
        let shifted = u32::from_le_bytes(four_digits(number)) >> (8 * zeros);
        self.buffer.extend_from_slice(&shifted.to_le_bytes());
        self.buffer.truncate(self.buffer.len() - zeros);
    }

    /// An instant of so many seconds and milliseconds since the epoch, inside of a string:
    /// `2025-10-30T14:00:00.000Z`.
    #[inline]
    pub(super) fn time(&mut self, secs: u64, millis: u64) -> &mut Self {
        let mut text = recent_second(secs);
        [_, text[20], text[21], text[22]] = four_digits(millis);
        self.buffer.extend_from_slice(&text);
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
            self.buffer.extend_from_slice(bytes);
        }
    }

    #[cold]
    fn escape_special(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'"' => self.buffer.extend_from_slice(b"\\\""),
                b'\\' => self.buffer.extend_from_slice(b"\\\\"),
                b'\n' => self.buffer.extend_from_slice(b"\\n"),
                b'\r' => self.buffer.extend_from_slice(b"\\r"),
                b'\t' => self.buffer.extend_from_slice(b"\\t"),
                special if is_special(*special) => {
                    const HEX: [u8; 16] = *b"0123456789abcdef";
                    let (high, low) = (usize::from(special >> 4), usize::from(special & 15));
                    self.buffer
                        .extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[high], HEX[low]]);
                }
                other => self.buffer.push(*other),
            }
        }
    }

    /// The document, in memory of exactly its size.
    pub(super) fn finish(self) -> Bytes {
        let mut buffer = self.buffer;
        let bytes = Bytes::from(Box::<[u8]>::from(&*buffer));
        if buffer.capacity() <= MOST_KEPT {
            buffer.clear();
            let _ = BUFFER.try_with(|place| place.set(buffer));
        }
        bytes
    }
}

/// The beginning of a second, counted from the epoch. Denials that come one after the other tell
/// of the same seconds: that in which they are made, and those in which windows end.
#[inline]
fn recent_second(secs: u64) -> [u8; 24] {
    let known = SECONDS_TOLD.try_with(|seconds| {
        let place = &seconds[usize::try_from(secs % SECONDS as u64).unwrap_or_default()];
        let (known, text) = place.get();
        if known == secs {
            return text;
        }
        let text = second(secs);
        place.set((secs, text));
        text
    });
    known.unwrap_or_else(|_| second(secs))
}

/// `2025-10-30T14:00:00.000Z`
#[inline(never)]
fn second(secs: u64) -> [u8; 24] {
    let (day, secs) = (secs / 86_400, secs % 86_400);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    text[..10].copy_from_slice(&recent_date(day));
    [text[11], text[12]] = two_digits(secs / 3_600);
    [text[14], text[15]] = two_digits(secs / 60 % 60);
    [text[17], text[18]] = two_digits(secs % 60);
    text
}

/// The date of a day, counted from the epoch. Instants that are told are mostly of today and of
/// few days to come.
fn recent_date(day: u64) -> [u8; 10] {
    let known = DATES.try_with(|dates| {
        let place = &dates[usize::try_from(day % DAYS as u64).unwrap_or_default()];
        let (known, text) = place.get();
        if known == day {
            return text;
        }
        let text = date(day);
        place.set((day, text));
        text
    });
    known.unwrap_or_else(|_| date(day))
}

/// `2025-10-30`
fn date(day: u64) -> [u8; 10] {
    let mut text = *b"0000-00-00";
    let (year, month, day) = calendar::date(day);
    [text[0], text[1]] = two_digits(year / 100);
    [text[2], text[3]] = two_digits(year);
    [text[5], text[6]] = two_digits(month);
    [text[8], text[9]] = two_digits(day);
    text
}

/// No thread remembers the dates of more days than this.
const DAYS: usize = 8;

/// Nor the texts of more seconds than this. No whole part of a minute or of a day, since now and
/// the end of a window that begins now would want the same place.
const SECONDS: usize = 61;

/// No thread keeps more than this between two documents.
const MOST_KEPT: usize = 4_096;

thread_local! {
    /// What documents are written in: one that grows, or that has room to spare, costs more
    /// allocations than one that is copied when its size is known.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };

    /// Seconds that were written lately, and how.
    static SECONDS_TOLD: [Cell<(u64, [u8; 24])>; SECONDS] =
        const { [const { Cell::new((u64::MAX, [0; 24])) }; SECONDS] };

    /// Days whose dates were written lately, and these; every place has some days to choose from.
    static DATES: [Cell<(u64, [u8; 10])>; DAYS] =
        const { [const { Cell::new((u64::MAX, [0; 10])) }; DAYS] };
}

/// What cannot stand in a string as it is; and `<`, so that the document can stand in a page.
const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\' || byte == b'<' || byte == 0x7f
}

/// The inside of a string.
pub(super) struct Inside<'a>(&'a mut Json);

impl Sink for Inside<'_> {
    #[inline]
    fn text(&mut self, text: &str) {
        self.0.escape(text);
    }

    #[inline]
    fn plain(&mut self, text: &str) {
        self.0.raw(text);
    }

    #[inline]
    fn number(&mut self, number: u64) {
        self.0.number(number);
    }
}
