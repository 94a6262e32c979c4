//! Messages with placeholders: [`Template`].

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::{Denial, words};
use crate::error::ValidationError;

/// Message of a denial with placeholders.
///
/// | placeholder | value | example |
/// |---|---|---|
/// | `{limit}` | the limit | `500` |
/// | `{used}` | what is used of it | `500` |
/// | `{window}` | its window, to follow "in the past" | `hour`, `15 minutes` |
/// | `{retry_after}` | seconds to wait | `1920` |
/// | `{retry_in}` | the wait in words, rounded up | `32 minutes` |
/// | `{policy}` | the quota's name | `user:secrets:1h` |
/// | `{tier}` | the tier | `free` |
///
/// `{{` and `}}` are literal braces.
///
/// ```
/// use tollgate::response::Template;
///
/// let text = "You've made {used} requests in the past {window}. Try again in {retry_in}.";
/// let template = Template::parse(text)?;
/// assert_eq!(template.to_string(), text);
///
/// let refused = Template::parse("Try again in {retry-in}.").unwrap_err();
/// assert_eq!(refused.value(), "{retry-in}");
/// assert!(refused.expected().contains("did you mean {retry_in}?"));
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Box<[Piece]>,
}

/// Part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(Cow<'static, str>),
    Limit,
    Used,
    Window,
    RetryAfter,
    RetryIn,
    Policy,
    Tier,
}

impl Piece {
    const NAMES: [(&'static str, Self); 7] = [
        ("limit", Self::Limit),
        ("used", Self::Used),
        ("window", Self::Window),
        ("retry_after", Self::RetryAfter),
        ("retry_in", Self::RetryIn),
        ("policy", Self::Policy),
        ("tier", Self::Tier),
    ];

    pub(super) const fn literal(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    fn named(name: &str) -> Option<Self> {
        let known = Self::NAMES.into_iter().find(|(known, _)| *known == name);
        known.map(|(_, piece)| piece)
    }
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    ///
    /// An unknown placeholder, or a brace that does not belong to one.
    pub fn parse(text: &str) -> Result<Self, ValidationError> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..];
            if brace.starts_with("{{") || brace.starts_with("}}") {
                plain.push_str(&brace[..1]);
                rest = &brace[2..];
                continue;
            }
            let inner = brace.strip_prefix('{').ok_or_else(|| lone(brace))?;
            let end = inner.find(['{', '}']).ok_or_else(|| lone(brace))?;
            let (name, after) = inner.split_at(end);
            rest = after.strip_prefix('}').ok_or_else(|| lone(brace))?;
            let piece = Piece::named(name).ok_or_else(|| unknown(name))?;
            if !plain.is_empty() {
                pieces.push(Piece::Text(Cow::Owned(std::mem::take(&mut plain))));
            }
            pieces.push(piece);
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(Cow::Owned(plain)));
        }
        Ok(Self {
            pieces: pieces.into(),
        })
    }

    /// Returns the message of `denial`. Unknown values are left out.
    #[must_use]
    pub fn fill(&self, denial: &Denial<'_>) -> String {
        let mut text = String::with_capacity(96);
        fill(&self.pieces, denial, &mut text);
        text
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }
}

/// Writes the pieces with their placeholders filled in.
pub(super) fn fill(pieces: &[Piece], denial: &Denial<'_>, out: &mut String) {
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Limit => number(denial.limit(), out),
            Piece::Used => number(denial.used(), out),
            Piece::RetryAfter => number(denial.retry_after_secs(), out),
            Piece::RetryIn => {
                if let Some(secs) = denial.retry_after_secs() {
                    words::wait(secs, out);
                }
            }
            Piece::Window => {
                if let Some(window) = denial.window() {
                    words::window(window, out);
                }
            }
            Piece::Policy => out.push_str(denial.policy().unwrap_or_default()),
            Piece::Tier => out.push_str(denial.tier().unwrap_or("default")),
        }
    }
}

fn number(number: Option<u64>, out: &mut String) {
    if let Some(number) = number {
        out.push_str(itoa::Buffer::new().format(number));
    }
}

fn lone(brace: &str) -> ValidationError {
    let shown: String = brace.chars().take(24).collect();
    ValidationError::new(
        "message",
        shown,
        format!(
            "{}, or {{{{ and }}}} for braces that are meant as such",
            known()
        ),
    )
}

fn unknown(name: &str) -> ValidationError {
    let alike = |text: &str| -> String {
        let letters = text.chars().filter(char::is_ascii_alphanumeric);
        letters.map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let mut names = Piece::NAMES.iter().map(|(known, _)| *known);
    let meant = names.find(|known| alike(known) == alike(name));
    let hint = meant.map_or(String::new(), |meant| {
        format!("; did you mean {{{meant}}}?")
    });
    let shown: String = name.chars().take(24).collect();
    ValidationError::new(
        "message placeholder",
        format_args!("{{{shown}}}"),
        format!("{}{hint}", known()),
    )
}

/// `{limit}, {used}, … or {tier}`
fn known() -> String {
    let names: Vec<String> = Piece::NAMES
        .iter()
        .map(|(name, _)| format!("{{{name}}}"))
        .collect();
    match names.split_last() {
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Parses as [`Template::parse`].
impl FromStr for Template {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        Self::parse(text)
    }
}

/// Writes the text that was parsed.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &*self.pieces {
            match piece {
                Piece::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}"))?,
                place => {
                    let mut names = Piece::NAMES.iter();
                    let name = names.find(|(_, known)| known == place);
                    write!(f, "{{{}}}", name.map_or("", |(name, _)| name))?;
                }
            }
        }
        Ok(())
    }
}
