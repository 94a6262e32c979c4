//! Where a request contains tokens: [`TokenLocation`].

use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;

use http::header;
use percent_encoding::percent_decode;

use super::super::single_header::SingleHeader;
use super::super::source::Identified;
use super::verify::Jws;
use crate::head::RequestHead;

/// The part of a request that is searched for tokens.
#[derive(Clone, Debug)]
pub(super) enum TokenLocation {
    /// `Authorization: Bearer …`
    Bearer,
    /// The cookie of this name.
    Cookie(Box<str>),
}

impl fmt::Display for TokenLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bearer => f.write_str("`Authorization: Bearer`"),
            Self::Cookie(name) => write!(f, "the cookie `{name}`"),
        }
    }
}

impl TokenLocation {
    /// Calls `visit` with each value that may be a token, until it breaks. Breaks by itself if
    /// the header is ambiguous.
    pub(super) fn visit<'a>(
        &self,
        head: &RequestHead<'a>,
        visit: impl FnMut(&'a [u8]) -> ControlFlow<Identified>,
    ) -> ControlFlow<Identified> {
        match self {
            Self::Bearer => bearer(head).map_or_else(ControlFlow::Break, |token| {
                token.map_or(ControlFlow::Continue(()), visit)
            }),
            Self::Cookie(name) => cookies(head, name.as_bytes(), visit),
        }
    }
}

/// Returns the value of `Authorization: Bearer`.
///
/// Lines that differ are ambiguous. So is a comma in the value: a proxy may have joined two lines
/// with it, and no token contains one (RFC 6750, section 2.1).
fn bearer<'a>(head: &RequestHead<'a>) -> Result<Option<&'a [u8]>, Identified> {
    let line = match SingleHeader::of(head, &header::AUTHORIZATION) {
        SingleHeader::Absent => return Ok(None),
        SingleHeader::Different => return Err(Identified::Ambiguous),
        SingleHeader::Only(line) | SingleHeader::Identical(line) => line.trim_ascii(),
    };
    // Some applications split at any white space.
    let Some((scheme, [b' ' | b'\t', token @ ..])) = line.split_at_checked("bearer".len()) else {
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

/// Calls `visit` with the values of all cookies of this name, in all lines, until it breaks.
///
/// A token that is percent-encoded, or whose cookie has a percent-encoded name, is ambiguous: the
/// cookie jars of common frameworks decode both, and browsers encode neither.
fn cookies<'a>(
    head: &RequestHead<'a>,
    name: &[u8],
    mut visit: impl FnMut(&'a [u8]) -> ControlFlow<Identified>,
) -> ControlFlow<Identified> {
    let lines = head.headers().get_all(header::COOKIE).iter();
    for pair in lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';')) {
        let Some(equals) = pair.iter().position(|byte| *byte == b'=') else {
            continue;
        };
        let (named, value) = (pair[..equals].trim_ascii(), &pair[equals + 1..]);
        if named == name {
            visit(unquoted(value))?;
        }
        if pair.contains(&b'%') && decoded(named) == name && is_token(&decoded(value)) {
            return ControlFlow::Break(Identified::Ambiguous);
        }
    }
    ControlFlow::Continue(())
}

fn is_token(value: &[u8]) -> bool {
    Jws::parse(unquoted(value)).is_some()
}

fn unquoted(value: &[u8]) -> &[u8] {
    match value.trim_ascii() {
        [b'"', token @ .., b'"'] | token => token,
    }
}

fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    percent_decode(text).into()
}
