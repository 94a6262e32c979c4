//! The dashboard: one page without external assets.

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
    include_str!("dashboard/script/policy.js"),
    include_str!("dashboard/script/main.js"),
    "})();\n",
);

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// The page and its content security policy.
#[derive(Debug)]
pub(super) struct DashboardPage {
    html: Bytes,
    policy: HeaderValue,
}

/// Allows the inline script and style by hash, and requests to the same origin.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'",
        csp_source(SCRIPT),
        csp_source(STYLE)
    );
    // The value is always valid in a header. Otherwise nothing may run.
    let nothing = HeaderValue::from_static("default-src 'none'");
    policy.parse().unwrap_or(nothing)
});

impl DashboardPage {
    /// Returns the page. It has a form for the token unless the API is open.
    pub(super) fn new(is_open: bool) -> Self {
        let html = MARKUP
            .replace("/*access*/", if is_open { "open" } else { "token" })
            .replace("/*style*/", STYLE)
            .replace("/*script*/", SCRIPT);
        Self {
            html: html.into(),
            policy: POLICY.clone(),
        }
    }

    pub(super) fn show(&self) -> Response {
        let mut response = Response::new(Body::from(self.html.clone()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HTML);
        headers.insert(CONTENT_SECURITY_POLICY, self.policy.clone());
        response
    }
}

/// Returns the CSP source of a text: `sha256-…` in base64.
fn csp_source(text: &str) -> String {
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

    /// Expected value: `openssl dgst -sha256 -binary | base64`.
    #[test]
    fn csp_sources_are_base64_of_sha256() {
        assert_eq!(
            csp_source("alert('Hello, world.');"),
            "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng="
        );
        assert_eq!(csp_source("").len(), "sha256-".len() + 44);
    }

    /// Style and script are inserted once, and neither can end its element.
    #[test]
    fn the_page_is_complete_and_has_no_external_assets() {
        for (mark, text) in [
            ("/*style*/", STYLE),
            ("/*script*/", SCRIPT),
            ("/*access*/", ""),
        ] {
            assert_eq!(MARKUP.matches(mark).count(), 1, "{mark}");
            assert!(!text.contains("</"), "{mark}");
        }
        let page = DashboardPage::new(false);
        assert!(
            page.policy
                .to_str()
                .unwrap()
                .contains("script-src 'sha256-")
        );
        let page = std::str::from_utf8(&page.html).unwrap();
        for part in [STYLE, SCRIPT] {
            assert!(page.contains(part));
        }
        // XML namespaces are not fetched.
        let page = page.replace("http://www.w3.org/", "");
        for outside in ["http://", "https://", " src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside} loads an external asset");
        }
        // Values of the server become text, never markup.
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
