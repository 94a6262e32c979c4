//! Cookies and schemes that common parsers accept are not a way around the quota per user.

use super::{bearer_app, cookie_app, is_unauthenticated, is_user, token};
use crate::support::http::send;

/// The cookie jars of `axum-extra`, `tower-cookies` and `actix-web` percent-decode names and
/// values.
#[tokio::test]
async fn percent_encoded_cookie_does_not_evade_the_quota_per_user() {
    let app = cookie_app();
    let token = token("alice");
    let encoded = token.replace('.', "%2E");
    let first = format!("%{:02x}{}", token.as_bytes()[0], &token[1..]);
    for cookie in [
        format!("session={encoded}"),
        format!("session={first}"),
        format!("s%65ssion={token}"),
        format!("%73ession={encoded}"),
        format!("session=\"{encoded}\""),
        format!("session=%22{token}%22"),
        format!("a=b; session={encoded}; c=d"),
    ] {
        let answer = send(&app, "GET /", &[("cookie", &cookie)]).await;
        assert_eq!(answer.status, 401, "{cookie}: {}", answer.body);
        assert_eq!(answer.json()["error"]["code"], "AMBIGUOUS_CREDENTIALS");
        // Also beside the plain form.
        let both = format!("session={token}; {cookie}");
        let answer = send(&app, "GET /", &[("cookie", &both)]).await;
        assert_eq!(answer.status, 401, "{both}");
    }
}

#[tokio::test]
async fn cookies_with_percent_signs_that_hold_no_token_are_ignored() {
    let app = cookie_app();
    for cookie in [
        "session=opaque%20value",
        "session=%7B%22id%22%3A1%7D",
        "session=100%; theme=%",
        "s%65ssion=",
        "s%65ssion=opaque",
        "other=%65yJhbGciOiJIUzI1NiJ9.e30.AAAA",
        "%=%; %%=%2",
    ] {
        is_unauthenticated(&send(&app, "GET /", &[("cookie", cookie)]).await);
        let valid = format!("{cookie}; session={}", token("alice"));
        is_user(&send(&app, "GET /", &[("cookie", &valid)]).await);
    }
}

#[tokio::test]
async fn white_space_after_the_scheme_does_not_evade_the_quota_per_user() {
    let app = bearer_app();
    let token = token("alice");
    for line in [
        format!("Bearer\t{token}"),
        format!("bearer \t {token}"),
        format!("BEARER   {token} \t"),
        format!(" Bearer {token}"),
    ] {
        is_user(&send(&app, "GET /", &[("authorization", &line)]).await);
    }
}

/// HTTP/2 clients may send one header line per cookie (RFC 9113, section 8.2.3).
#[tokio::test]
async fn cookies_in_several_lines_are_read() {
    let app = cookie_app();
    let session = format!("session={}", token("alice"));
    let lines = [
        ("cookie", "theme=dark"),
        ("cookie", session.as_str()),
        ("cookie", "lang=de"),
    ];
    is_user(&send(&app, "GET /", &lines).await);
}
