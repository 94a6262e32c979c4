//! Bounds on text that callers choose, before it goes into an event.

use std::borrow::Cow;

/// Bytes of a path, a caller's plain name or other text in an event.
pub(crate) const MAX_TEXT: usize = 256;
/// Bytes of a method. The longest registered one has 17.
pub(super) const MAX_METHOD: usize = 32;

const ELLIPSIS: char = '…';

/// Returns `text` if it has at most `max` bytes. Otherwise cuts it at a character boundary, so that
/// it has at most `max` bytes together with the ellipsis that marks the cut.
pub(crate) fn truncate(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(max.saturating_sub(ELLIPSIS.len_utf8()));
    let mut cut = String::with_capacity(max);
    cut.push_str(&text[..end]);
    cut.push(ELLIPSIS);
    Cow::Owned(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_at_a_character_boundary_and_never_longer_than_allowed() {
        let whole = "x".repeat(MAX_TEXT);
        assert_eq!(truncate(&whole, MAX_TEXT), whole);
        assert_eq!(truncate("", MAX_TEXT), "");
        for letter in ["x", "ü", "…", "𝄞"] {
            for before in 0..4 {
                let text = format!("{}{}", "/".repeat(before), letter.repeat(300));
                let cut = truncate(&text, MAX_TEXT);
                assert!(cut.len() <= MAX_TEXT && cut.len() > MAX_TEXT - 7, "{cut}");
                let kept = cut.strip_suffix(ELLIPSIS).unwrap();
                assert!(text.starts_with(kept), "{cut}");
            }
        }
    }
}
