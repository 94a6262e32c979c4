//! Where messages are written to.

use crate::headers::Decimal;

/// Takes a message bit by bit: a string, or the inside of a JSON string.
pub(super) trait Sink {
    /// Any text.
    fn text(&mut self, text: &str);

    /// Letters, spaces and the like: what means the same wherever it is written.
    fn plain(&mut self, text: &str);

    /// A number.
    fn number(&mut self, number: u64);
}

impl Sink for String {
    fn text(&mut self, text: &str) {
        self.push_str(text);
    }

    fn plain(&mut self, text: &str) {
        self.push_str(text);
    }

    fn number(&mut self, number: u64) {
        self.push_str(Decimal::new(number).as_str());
    }
}
