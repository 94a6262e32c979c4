//! Routes: `GET /v1/items/{id}`, and which of them a request took.

mod compile;
mod spelling;
mod table;

use http::Method;

use crate::error::Invalid;

pub(crate) use self::table::{Routes, Taken, Target};

/// A route as it is written: a method, or any, and a path pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) method: Option<Method>,
    pub(crate) path: String,
}

impl Route {
    /// Reads `GET /v1/items/{id}`, or without a method for all of them.
    pub(crate) fn parse(text: &str) -> Result<Self, Invalid> {
        let refuse = |expected: &str| Invalid::new("route", text, expected.to_owned());
        let (method, path) = match text.trim().split_once(char::is_whitespace) {
            Some((method, path)) => (Some(method), path.trim_start()),
            None => (None, text.trim()),
        };
        let method = match method {
            None | Some("*" | "ANY") => None,
            Some(name) if name.bytes().all(|byte| byte.is_ascii_uppercase()) => Some(
                Method::from_bytes(name.as_bytes())
                    .map_err(|_| refuse("a method such as `GET` before the path"))?,
            ),
            Some(_) => return Err(refuse("a method in capitals, such as `GET /v1/items/{id}`")),
        };
        if !path.starts_with('/') {
            return Err(refuse(
                "a path that begins with `/`, such as `GET /v1/items/{id}`",
            ));
        }
        if path.contains(|c: char| c.is_whitespace() || c == '?' || c == '#') {
            return Err(refuse("a path without spaces, query or fragment"));
        }
        if let Some(old) = path.split('/').find(|segment| segment.starts_with(':')) {
            let name = &old[1..];
            return Err(refuse(&format!("`{{{name}}}` instead of `{old}`")));
        }
        Ok(Self {
            method,
            path: path.to_owned(),
        })
    }

    /// The name of a rule that has no other: `GET/v1/items/{id}`.
    pub(crate) fn name(&self) -> String {
        let method = self.method.as_ref().map_or("", Method::as_str);
        format!("{method}{}", self.path)
    }

    /// What is the same for routes that match the same paths, however their parameters are
    /// called.
    fn shape(&self) -> String {
        let segments =
            self.path
                .split('/')
                .map(|segment| match (segment.find('{'), segment.rfind('}')) {
                    (Some(from), Some(to)) if from < to && !segment.contains("{{") => {
                        let star = if segment[from..].starts_with("{*") {
                            "*"
                        } else {
                            ""
                        };
                        format!("{}{{{star}}}{}", &segment[..from], &segment[to + 1..])
                    }
                    _ => segment.to_owned(),
                });
        segments.collect::<Vec<_>>().join("/")
    }

    /// Where it begins, if it takes the rest of a path that is written out.
    fn root(&self) -> Option<&str> {
        let (root, _) = self.path.split_once("/{*")?;
        (!root.is_empty() && !root.contains('{')).then_some(root)
    }

    /// How specific each segment is: what is written out before what is a parameter before what
    /// takes the rest.
    fn specificity(&self) -> Vec<u8> {
        let of_segment = |segment: &str| match segment {
            rest if rest.contains("{*") => 1,
            parameter if parameter.contains('{') => 2,
            _ => 3,
        };
        self.path.split('/').map(of_segment).collect()
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
