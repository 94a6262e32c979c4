//! Where in a request the token is.

use http::header;

use super::super::line::Line;
use crate::head::Head;

/// Where tokens are looked for.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// `Authorization: Bearer …`
    Bearer,
    /// The cookie of this name.
    Cookie(Box<str>),
}

/// What was found there.
pub(super) enum Found<'a> {
    Nothing,
    Token(&'a [u8]),
    /// Two of them, or something that can be no token.
    Wrong,
}

impl Place {
    pub(super) fn find<'a>(&self, head: &Head<'a>) -> Found<'a> {
        match self {
            Self::Bearer => bearer(head),
            Self::Cookie(name) => cookie(head, name.as_bytes()),
        }
    }
}

fn bearer<'a>(head: &Head<'a>) -> Found<'a> {
    const SCHEME: usize = "bearer".len();
    let line = match Line::of(head, &header::AUTHORIZATION) {
        Line::Absent => return Found::Nothing,
        Line::Ambiguous => return Found::Wrong,
        Line::Only(line) => line.trim_ascii(),
    };
    match line.split_at_checked(SCHEME) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case(b"bearer") => match rest {
            [b' ', token @ ..] => Found::Token(token.trim_ascii_start()),
            [] => Found::Wrong,
            // Another scheme whose name begins alike.
            _ => Found::Nothing,
        },
        _ => Found::Nothing,
    }
}

fn cookie<'a>(head: &Head<'a>, name: &[u8]) -> Found<'a> {
    let mut found = Found::Nothing;
    let lines = head.headers().get_all(header::COOKIE).iter();
    let pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    for pair in pairs {
        let Some(equals) = pair.iter().position(|byte| *byte == b'=') else {
            continue;
        };
        if pair[..equals].trim_ascii() != name {
            continue;
        }
        if !matches!(found, Found::Nothing) {
            return Found::Wrong;
        }
        found = match pair[equals + 1..].trim_ascii() {
            [] => Found::Wrong,
            [b'"', token @ .., b'"'] | token => Found::Token(token),
        };
    }
    found
}
