//! A service without axum that matches paths by itself, as servers on plain hyper do.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use matchit::Router as Matcher;
use tower::util::BoxCloneSyncService;

use super::build::{Service, ran};
use super::generate::Generator;
use super::tree::{Handler, Server, covers};

/// What the service does with a path before it matches it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Normalization {
    /// Decodes percent-encoding, before or after the path is split into segments.
    decode: Option<Decode>,
    /// Removes empty segments.
    slashes: Option<Slashes>,
    /// Resolves `.` and `..`.
    dots: bool,
    /// Reads a backslash as a slash.
    backslashes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decode {
    /// `%2F` separates segments.
    Path,
    /// `%2F` is a character of a segment.
    Segments,
}

#[derive(Clone, Copy, Debug)]
enum Slashes {
    All,
    Leading,
    Trailing,
}

impl Generator<'_> {
    pub(super) fn plain(&mut self) -> Server {
        let decode = self
            .random
            .pick(&[None, Some(Decode::Path), Some(Decode::Segments)]);
        let slashes = self.random.pick(&[
            None,
            Some(Slashes::All),
            Some(Slashes::Leading),
            Some(Slashes::Trailing),
        ]);
        let normalization = Normalization {
            decode,
            slashes,
            dots: self.random.chance(40),
            backslashes: self.random.chance(20),
        };
        let mut matcher = Matcher::new();
        let mut served = Vec::new();
        for _ in 0..12 {
            let mut pattern = self.path(true);
            if decode.is_some() {
                // A service that decodes has its routes in decoded form.
                pattern = pattern.replace("a%20b", "é");
            }
            if Self::fits(&mut matcher, &pattern) {
                served.extend(self.by_method(&pattern, &[]));
            }
        }
        Server::Plain(normalization, served)
    }
}

/// Returns the service.
pub(super) fn service(
    normalization: Normalization,
    served: &[usize],
    handlers: &[Handler],
) -> Service {
    let mut by_pattern: BTreeMap<&str, Vec<(usize, Option<&'static str>)>> = BTreeMap::new();
    for id in served {
        let handler = &handlers[*id];
        let same = by_pattern.entry(&handler.pattern).or_default();
        same.push((*id, handler.method));
    }
    let mut matcher = Matcher::new();
    for (pattern, handlers) in by_pattern {
        matcher.insert(pattern, handlers).unwrap();
    }
    let matcher = Arc::new(matcher);
    BoxCloneSyncService::new(tower::service_fn(move |request: Request<Body>| {
        let path = normalization.apply(request.uri().path());
        let found = path.and_then(|path| {
            let found = matcher.at(&path).ok()?;
            let method = request.method().as_str();
            let mut handlers = found.value.iter();
            handlers.find(|(_, own)| covers(*own, method))
        });
        let response = match found {
            Some((id, _)) => ran(*id),
            None => Response::builder()
                .status(StatusCode::NOT_FOUND)
                .body(Body::empty())
                .unwrap(),
        };
        std::future::ready(Ok(response))
    }))
}

/// Stands for a slash that is a character of a segment.
const SLASH: char = '\u{1}';

impl Normalization {
    fn apply(self, path: &str) -> Option<String> {
        let mut path = path.to_owned();
        if self.backslashes {
            path = path.replace('\\', "/");
        }
        if let Some(decode) = self.decode {
            path = decoded(&path, decode)?;
        }
        let mut segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        if self.dots {
            let mut kept: Vec<&str> = Vec::new();
            for segment in segments {
                match segment {
                    "." => {}
                    ".." => _ = kept.pop(),
                    segment => kept.push(segment),
                }
            }
            segments = kept;
        }
        match self.slashes {
            None => {}
            Some(Slashes::All) => segments.retain(|segment| !segment.is_empty()),
            Some(Slashes::Leading) => {
                let from = segments.iter().position(|segment| !segment.is_empty());
                segments.drain(..from.unwrap_or(segments.len()));
            }
            Some(Slashes::Trailing) => {
                let to = segments.iter().rposition(|segment| !segment.is_empty());
                segments.truncate(to.map_or(0, |to| to + 1));
            }
        }
        Some(format!("/{}", segments.join("/")))
    }
}

/// Decodes once. What is not valid is left as it is written, or not served if it is not UTF-8.
fn decoded(path: &str, decode: Decode) -> Option<String> {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let bytes = path.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let value = match (
            bytes[at],
            digit(bytes.get(at + 1)),
            digit(bytes.get(at + 2)),
        ) {
            (b'%', Some(high), Some(low)) => u8::try_from(high * 16 + low).ok(),
            _ => None,
        };
        match value {
            Some(b'/') if decode == Decode::Segments => {
                decoded.extend(SLASH.to_string().as_bytes());
            }
            Some(value) => decoded.push(value),
            None => decoded.push(bytes[at]),
        }
        at += if value.is_some() { 3 } else { 1 };
    }
    String::from_utf8(decoded).ok()
}
