//! Segments of a route pattern.

use crate::error::ValidationError;

/// One segment of a route pattern: the text between two slashes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Segment {
    /// Matches itself. Escaped braces (`{{`, `}}`) are unescaped here.
    Literal(Box<[u8]>),
    /// `user_{name}`: matches segments that begin with this text.
    Prefixed(Box<[u8]>),
    /// `{id}`: matches one segment.
    Parameter,
    /// `{*rest}`: matches the rest of the path.
    Wildcard,
}

/// Most parameters of one route. `matchit` names them with one letter each and panics beyond
/// that.
const MAX_PARAMETERS: usize = 25;

/// Splits the pattern of a route, which begins with `/`, into its segments.
pub(super) fn parse(pattern: &str) -> Result<Box<[Segment]>, ValidationError> {
    let refuse = |expected: String| ValidationError::new("route", pattern, expected);
    let mut segments = Vec::new();
    for text in pattern.split('/').skip(1) {
        if segments.last() == Some(&Segment::Wildcard) {
            return Err(refuse(
                "a wildcard such as `{*rest}` only as the last segment".to_owned(),
            ));
        }
        segments.push(segment(text).map_err(refuse)?);
    }
    let parameters = segments
        .iter()
        .filter(|segment| !matches!(segment, Segment::Literal(_)))
        .count();
    if parameters > MAX_PARAMETERS {
        return Err(refuse(format!("at most {MAX_PARAMETERS} parameters")));
    }
    Ok(segments.into())
}

/// Parses one segment, or returns what was expected instead.
fn segment(text: &str) -> Result<Segment, String> {
    let mut literal = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        rest = match rest {
            [] => return Ok(Segment::Literal(literal.into())),
            [b'{', b'{', tail @ ..] | [b'}', b'}', tail @ ..] => {
                literal.push(rest[0]);
                tail
            }
            [b'{', tail @ ..] => return parameter(text, literal, tail),
            [b'}', ..] => return Err(format!("`}}}}` for a brace in `{text}`")),
            [byte, tail @ ..] => {
                literal.push(*byte);
                tail
            }
        };
    }
}

/// Parses a parameter after its opening brace. `before` is the literal text in front of it.
fn parameter(text: &str, before: Vec<u8>, rest: &[u8]) -> Result<Segment, String> {
    let Some(end) = rest.iter().position(|byte| *byte == b'}') else {
        return Err(format!("a closing brace in `{text}`"));
    };
    let (name, after) = (&rest[..end], &rest[end + 1..]);
    let (name, is_wildcard) = match name {
        [b'*', name @ ..] => (name, true),
        name => (name, false),
    };
    if name.is_empty() || name.iter().any(|byte| matches!(byte, b'{' | b'*')) {
        return Err("parameters such as `{id}` or `{*rest}`".to_owned());
    }
    if !after.is_empty() {
        return Err(format!(
            "a parameter at the end of its segment, such as `/user_{{name}}`; `{text}` has text after it"
        ));
    }
    match (is_wildcard, before.is_empty()) {
        (true, true) => Ok(Segment::Wildcard),
        (true, false) => Err(format!(
            "a wildcard that is a whole segment, such as `/files/{{*rest}}`, instead of `{text}`"
        )),
        (false, true) => Ok(Segment::Parameter),
        (false, false) => Ok(Segment::Prefixed(before.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::{Segment, parse};

    fn literal(text: &str) -> Segment {
        Segment::Literal(text.as_bytes().into())
    }

    #[test]
    fn patterns_are_split_into_segments() {
        let prefixed = Segment::Prefixed(b"user_".as_slice().into());
        for (pattern, expected) in [
            ("/", vec![literal("")]),
            ("/a/", vec![literal("a"), literal("")]),
            ("/{{a}}", vec![literal("{a}")]),
            ("/user_{name}/x", vec![prefixed, literal("x")]),
            ("/{id}/{*rest}", vec![Segment::Parameter, Segment::Wildcard]),
        ] {
            assert_eq!(*parse(pattern).unwrap(), *expected, "{pattern}");
        }
    }

    #[test]
    fn malformed_parameters_are_rejected() {
        let many = "/{a}".repeat(26);
        for (pattern, expected) in [
            ("/x/{name}.json", "`{name}.json` has text after it"),
            ("/{a}{b}", "`{a}{b}` has text after it"),
            ("/files{*rest}", "a wildcard that is a whole segment"),
            ("/{*rest}/more", "only as the last segment"),
            ("/{}", "parameters such as"),
            ("/{*}", "parameters such as"),
            ("/{a", "a closing brace"),
            ("/a}", "for a brace"),
            (&many, "at most 25 parameters"),
        ] {
            let refused = parse(pattern).unwrap_err().to_string();
            assert!(refused.contains(expected), "{pattern}: {refused}");
        }
    }
}
