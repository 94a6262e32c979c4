//! Routes: `GET /v1/items/{id}`, and which of them a request took.

mod compile;
mod path;
mod segment;
mod table;
mod tree;
mod walk;

use http::Method;

use self::segment::Segment;
use crate::error::ValidationError;
use crate::invisible::is_invisible;

pub use self::path::PathRejection;
pub(crate) use self::table::{Readings, RouteMatch, RouteTarget, RoutedPath, Routes};

/// A route as it is written: a method, or any, and a path pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) method: Option<Method>,
    pub(crate) path: String,
    segments: Box<[Segment]>,
}

impl Route {
    /// Parses a route such as `GET /v1/items/{id}`. Without a method, it is for all methods.
    pub(crate) fn parse(text: &str) -> Result<Self, ValidationError> {
        let reject = |expected: &str| ValidationError::new("route", text, expected.to_owned());
        let (method, path) = match text.trim().split_once(char::is_whitespace) {
            Some((method, path)) => (Some(method), path.trim_start()),
            None => (None, text.trim()),
        };
        let method = match method {
            None | Some("*" | "ANY") => None,
            Some(name) if name.bytes().all(|byte| byte.is_ascii_uppercase()) => Some(
                Method::from_bytes(name.as_bytes())
                    .map_err(|_| reject("a method such as `GET` before the path"))?,
            ),
            Some(_) => return Err(reject("a method in capitals, such as `GET /v1/items/{id}`")),
        };
        if !path.starts_with('/') {
            return Err(reject(
                "a path that begins with `/`, such as `GET /v1/items/{id}`",
            ));
        }
        if path.contains(|c: char| c.is_whitespace() || c == '?' || c == '#') {
            return Err(reject("a path without spaces, query or fragment"));
        }
        if let Some(hidden) = path.chars().find(|c| is_invisible(*c)) {
            let code = u32::from(hidden);
            let expected = format!("a path without invisible characters, such as U+{code:04X}");
            return Err(ValidationError::new("route", text.escape_debug(), expected));
        }
        if let Some(old) = path.split('/').find(|segment| segment.starts_with(':')) {
            let name = &old[1..];
            return Err(reject(&format!("`{{{name}}}` instead of `{old}`")));
        }
        let segments = segment::parse(path).map_err(|error| reject(error.expected()))?;
        Ok(Self {
            method,
            path: path.to_owned(),
            segments,
        })
    }

    /// Returns the default name of its rule: `GET/v1/items/{id}`.
    pub(crate) fn name(&self) -> String {
        let method = self.method.as_ref().map_or("", Method::as_str);
        format!("{method}{}", self.path)
    }

    /// Returns the pattern where a wildcard begins: `/files` for `/files/{*rest}`, and
    /// `/` for `/{*rest}`.
    fn wildcard_root(&self) -> Option<&str> {
        match self.segments.last() {
            Some(Segment::Wildcard) => {
                let (root, _) = self.path.rsplit_once('/')?;
                Some(if root.is_empty() { "/" } else { root })
            }
            _ => None,
        }
    }

    /// Returns a path that the pattern matches, and that hardly contains a literal of another route.
    fn sample(pattern: &[Segment]) -> String {
        let mut path = String::new();
        for segment in pattern {
            path.push('/');
            match segment {
                Segment::Literal(text) => path.push_str(&String::from_utf8_lossy(text)),
                Segment::Prefixed(prefix) => {
                    path.push_str(&String::from_utf8_lossy(prefix));
                    path.push('\u{1}');
                }
                Segment::Parameter | Segment::Wildcard => path.push('\u{1}'),
            }
        }
        path
    }
}

impl std::fmt::Display for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.method {
            Some(method) => write!(f, "{method} {}", self.path),
            None => f.write_str(&self.path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_with_invisible_or_bidirectional_characters_are_rejected() {
        for c in [
            '\u{200b}',
            '\u{202e}',
            '\u{2066}',
            '\u{ad}',
            '\u{feff}',
            '\u{e0041}',
            '\u{1}',
        ] {
            let error = Route::parse(&format!("GET /lo{c}gin")).unwrap_err();
            assert!(error.expected().contains("invisible"), "{error}");
            assert!(!error.to_string().contains(c), "the message is escaped");
        }
        for route in ["GET /login", "/größe/{id}", "/\u{4e2d}"] {
            assert!(Route::parse(route).is_ok(), "{route}");
        }
    }
}
