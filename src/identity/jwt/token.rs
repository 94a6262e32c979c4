//! Where in a request the token is.

use std::ops::ControlFlow;

use http::header;

use super::super::line::Line;
use super::super::source::Identified;
use crate::head::Head;

/// Where tokens are looked for.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// `Authorization: Bearer …`
    Bearer,
    /// The cookie of this name.
    Cookie(Box<str>),
}

impl Place {
    /// Calls `visit` with each value that may be a token, until it breaks. Breaks by itself if
    /// the header is ambiguous.
    pub(super) fn visit<'a>(
        &self,
        head: &Head<'a>,
        visit: impl FnMut(&'a [u8]) -> ControlFlow<Identified>,
    ) -> ControlFlow<Identified> {
        match self {
            Self::Bearer => bearer(head).map_or_else(ControlFlow::Break, |token| {
                token.map_or(ControlFlow::Continue(()), visit)
            }),
            Self::Cookie(name) => cookies(head, name.as_bytes()).try_for_each(visit),
        }
    }
}

/// Returns the value of `Authorization: Bearer`.
///
/// Lines that differ are ambiguous. So is a comma in the value: a proxy may have joined two lines
/// with it, and no token contains one (RFC 6750, section 2.1).
fn bearer<'a>(head: &Head<'a>) -> Result<Option<&'a [u8]>, Identified> {
    let line = match Line::of(head, &header::AUTHORIZATION) {
        Line::Absent => return Ok(None),
        Line::Different => return Err(Identified::Ambiguous),
        Line::Only(line) | Line::Identical(line) => line.trim_ascii(),
    };
    let Some((scheme, [b' ', token @ ..])) = line.split_at_checked("bearer".len()) else {
        return Ok(None);
    };
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Ok(None);
    }
    if token.contains(&b',') {
        return Err(Identified::Ambiguous);
    }
    Ok(Some(token.trim_ascii_start()))
}

/// Returns the values of all cookies of this name, in all lines.
fn cookies<'a>(head: &Head<'a>, name: &[u8]) -> impl Iterator<Item = &'a [u8]> {
    let lines = head.headers().get_all(header::COOKIE).iter();
    let pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    pairs.filter_map(move |pair| {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        if pair[..equals].trim_ascii() != name {
            return None;
        }
        Some(match pair[equals + 1..].trim_ascii() {
            [b'"', token @ .., b'"'] | token => token,
        })
    })
}
