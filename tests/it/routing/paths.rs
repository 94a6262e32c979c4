//! Generates requests: paths that reach the handlers of an application, and odd forms of them.

use super::pattern::{Kind, segments};
use super::random::Random;
use super::tree::App;

/// A request without headers and body.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) method: &'static str,
    pub(super) uri: String,
}

const METHODS: [&str; 10] = [
    "GET", "GET", "GET", "POST", "POST", "HEAD", "PUT", "OPTIONS", "DELETE", "BREW",
];

/// Values of parameters: ordinary ones, names of other routes, and odd ones.
const VALUES: [&str; 16] = [
    "1",
    "x",
    "me",
    "report.pdf",
    "a%20b",
    "a",
    "b",
    "c",
    "v1",
    "login",
    "",
    "a%2Fb",
    "%61",
    "u_",
    "x;v=2",
    "%ff",
];

pub(super) fn request(random: &mut Random, app: &App) -> Sent {
    let mut method = random.pick(&METHODS);
    if random.chance(1) {
        let (method, uri) = random.pick(&[
            ("OPTIONS", "*"),
            ("CONNECT", "example.com:443"),
            ("GET", "http://example.com"),
        ]);
        let uri = uri.to_owned();
        return Sent { method, uri };
    }
    let mut path = if app.handlers.is_empty() || random.chance(6) {
        let values = (0..=random.below(3)).map(|_| random.pick(&VALUES));
        ["/", &values.collect::<Vec<_>>().join("/")].concat()
    } else {
        let handler = &app.handlers[random.below(app.handlers.len())];
        if let Some(own) = handler.method.filter(|_| !random.chance(10)) {
            method = own;
        }
        instantiate(random, &handler.pattern)
    };
    if random.chance(50) {
        for _ in 0..=random.below(3) {
            change(random, &mut path);
        }
    }
    if !path.starts_with('/') {
        path.insert(0, '/');
    }
    let mut uri = path;
    if random.chance(5) {
        uri.push_str("?next=/login/../a//b");
    }
    if random.chance(8) {
        uri = format!("http://example.com{uri}");
    }
    Sent { method, uri }
}

/// Returns a path that matches the pattern.
fn instantiate(random: &mut Random, pattern: &str) -> String {
    let mut path = String::new();
    for segment in segments(pattern) {
        match Kind::of(segment) {
            Kind::Literal => {
                path.push('/');
                let text = segment.replace("{{", "{").replace("}}", "}");
                path.push_str(&text.replace('é', "%C3%A9"));
            }
            Kind::Prefixed(prefix) => {
                path.push('/');
                path.push_str(prefix);
                path.push_str(value(random));
            }
            Kind::Parameter => {
                path.push('/');
                path.push_str(value(random));
            }
            Kind::Wildcard => {
                for _ in 0..random.below(4) {
                    path.push('/');
                    path.push_str(value(random));
                }
            }
        }
    }
    path
}

/// Mostly ordinary values.
fn value(random: &mut Random) -> &'static str {
    let from = if random.chance(85) {
        &VALUES[..10]
    } else {
        &VALUES
    };
    random.pick(from)
}

/// Changes a path in one way that a client can choose.
fn change(random: &mut Random, path: &mut String) {
    let slashes: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
    let Some(&slash) = slashes.get(random.below(slashes.len().max(1))) else {
        path.push('/');
        return;
    };
    match random.below(100) {
        // Doubled slashes, a few or many.
        0..20 => path.insert(slash, '/'),
        20..26 => {
            let more = "/".repeat(2 + random.below(7));
            path.insert_str(slash, &more);
        }
        26..42 => path.push('/'),
        // A missing slash.
        42..45 => _ = path.remove(slash),
        45..50 => {
            let shorter = path.trim_end_matches('/').rfind('/').unwrap_or(0);
            path.truncate(shorter);
        }
        // Percent-encoding.
        50..64 => encode(random, path),
        64..72 => path.replace_range(slash..=slash, random.pick(&["%2F", "%2f", "/%2F", "%2F/"])),
        // Dot segments.
        72..80 => {
            let dots = random.pick(&["/.", "/..", "/%2e", "/%2E%2e", "/.%2e", "/a/..", "/..;"]);
            path.insert_str(slash, dots);
        }
        80..83 => path.replace_range(slash..=slash, "\\"),
        83..90 => {
            let value = value(random);
            path.insert_str(slash, value);
            path.insert(slash, '/');
        }
        90..93 => path.make_ascii_uppercase(),
        93..97 => path.push_str(random.pick(&["%", "%zz", "%00", "%5C", "%252F", ";a=b", "{x}"])),
        97..99 => {
            let long = random.pick(&["/", "%2F", "a%2F", "//%2F", "/a", "/a%20b"]);
            path.push_str(&long.repeat(random.below(300)));
        }
        _ => path.push_str(&"/long".repeat(2_000)),
    }
}

/// Encodes one character that is not a slash.
fn encode(random: &mut Random, path: &mut String) {
    let at = random.below(path.len());
    let byte = path.as_bytes()[at];
    if byte.is_ascii_alphanumeric() {
        path.replace_range(at..=at, &format!("%{byte:02x}"));
    }
}

/// The most bytes of a path that is walked.
const LONGEST: usize = 8 * 1024;

/// Whether ordinary clients send this path: at most 8 KiB, without empty and dot segments,
/// backslashes and a trailing slash, and encoded only where it must be.
pub(super) fn is_plain(path: &str) -> bool {
    if path == "/" {
        return true;
    }
    let is_segment = |segment: &str| {
        !matches!(segment, "" | "." | "..") && !segment.contains('\\') && is_needed(segment)
    };
    path.len() <= LONGEST && path.starts_with('/') && segments(path).all(is_segment)
}

/// Whether each percent sign begins a sequence, of a byte that clients must encode.
fn is_needed(segment: &str) -> bool {
    segment.split('%').skip(1).all(|rest| {
        let byte = rest.get(..2).map(|digits| u8::from_str_radix(digits, 16));
        let Some(Ok(byte)) = byte else { return false };
        let is_unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        !is_unreserved && byte != b'/' && byte != b'\\'
    })
}
