//! The dashboard: one page that needs nothing else.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::HeaderValue;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use sha2::{Digest, Sha256};

const MARKUP: &str = include_str!("dashboard/index.html");
const STYLE: &str = include_str!("dashboard/style.css");
const SCRIPT: &str = concat!(
    "'use strict';\n(() => {\n",
    include_str!("dashboard/script/dom.js"),
    include_str!("dashboard/script/api.js"),
    include_str!("dashboard/script/charts.js"),
    include_str!("dashboard/script/overview.js"),
    include_str!("dashboard/script/lookup.js"),
    include_str!("dashboard/script/control.js"),
    include_str!("dashboard/script/main.js"),
    "})();\n",
);

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// The page, and what it may do.
#[derive(Debug)]
pub(super) struct Page {
    whole: Bytes,
    policy: HeaderValue,
}

/// What the page may do: run this script, look like this, ask where it comes from.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'",
        source(SCRIPT),
        source(STYLE)
    );
    // What it is made of can always stand in a header; if it could not, nothing may run.
    let nothing = HeaderValue::from_static("default-src 'none'");
    policy.parse().unwrap_or(nothing)
});

impl Page {
    /// One that asks for a token, unless the door is open.
    pub(super) fn new(is_open: bool) -> Self {
        let whole = MARKUP
            .replace("/*door*/", if is_open { "open" } else { "token" })
            .replace("/*style*/", STYLE)
            .replace("/*script*/", SCRIPT);
        Self {
            whole: whole.into(),
            policy: POLICY.clone(),
        }
    }

    pub(super) fn show(&self) -> Response {
        let mut response = Response::new(Body::from(self.whole.clone()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HTML);
        headers.insert(CONTENT_SECURITY_POLICY, self.policy.clone());
        response
    }
}

/// What a browser knows a text by: `sha256-…`, in base 64.
fn source(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut source = "sha256-".to_owned();
    for some in Sha256::digest(text).chunks(3) {
        let bits = some
            .iter()
            .fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        let bits = bits << (8 * (3 - some.len()));
        for place in 0..4 {
            let digit = DIGITS[bits >> (18 - 6 * place) & 63];
            let digit = if place <= some.len() { digit } else { b'=' };
            let _ = write!(source, "{}", char::from(digit));
        }
    }
    source
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `openssl dgst -sha256 -binary | base64` has it.
    #[test]
    fn digests_are_written_as_browsers_do() {
        assert_eq!(
            source("alert('Hello, world.');"),
            "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng="
        );
        assert_eq!(source("").len(), "sha256-".len() + 44);
    }

    /// Each is put in once, and neither could end its element early.
    #[test]
    fn the_page_is_whole() {
        for (mark, text) in [
            ("/*style*/", STYLE),
            ("/*script*/", SCRIPT),
            ("/*door*/", ""),
        ] {
            assert_eq!(MARKUP.matches(mark).count(), 1, "{mark}");
            assert!(!text.contains("</"), "{mark}");
        }
        let page = Page::new(false);
        assert!(
            page.policy
                .to_str()
                .unwrap()
                .contains("script-src 'sha256-")
        );
        let page = std::str::from_utf8(&page.whole).unwrap();
        for whole in [STYLE, SCRIPT] {
            assert!(page.contains(whole));
        }
        // The names of namespaces are no addresses.
        let page = page.replace("http://www.w3.org/", "");
        for outside in ["http://", "https://", " src=", "@import", "url("] {
            assert!(
                !page.contains(outside),
                "{outside} would come from elsewhere"
            );
        }
        // Whatever the server says becomes text.
        for markup in [
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "document.write",
            "eval(",
        ] {
            assert!(!page.contains(markup), "{markup}");
        }
    }
}
