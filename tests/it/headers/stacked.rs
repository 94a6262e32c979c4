//! Layers inside of layers: the response has one complete set of headers, the tightest.

use http::{HeaderMap, HeaderName, HeaderValue};
use tollgate::headers::{HeaderSet, HeaderStyle, QuotaUsage, Report, annotate};

use super::{NOW, allowed, name, text};

const LEGACY: [&str; 5] = [
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-policy",
    "x-ratelimit-warning",
];

/// Adds the headers of a quota with `remaining` of 100.
fn put(headers: &mut HeaderMap, rule: &str, set: HeaderSet, remaining: u64, warn: bool) {
    let name = name("user", rule, "100/hour");
    let usage = QuotaUsage::new(&name, allowed(100, 100 - remaining));
    let report = Report::new(usage, NOW).with_warning(warn);
    annotate(HeaderStyle::new(set), headers, &report, [usage]);
}

#[test]
fn the_tighter_set_is_kept_completely() {
    for set in [HeaderSet::Legacy, HeaderSet::Ietf, HeaderSet::Both] {
        for (inner, outer, shown) in [(3, 9, "inner"), (9, 3, "outer"), (5, 5, "inner")] {
            let mut headers = HeaderMap::new();
            put(&mut headers, "inner", set, inner, true);
            put(&mut headers, "outer", set, outer, false);

            let mut alone = HeaderMap::new();
            let remaining = inner.min(outer);
            put(&mut alone, shown, set, remaining, shown == "inner");
            assert_eq!(headers, alone, "{set}: {inner} inside {outer}");
        }
    }
}

#[test]
fn the_tighter_set_can_be_of_either_family() {
    for set in [HeaderSet::Legacy, HeaderSet::Ietf] {
        let mut headers = HeaderMap::new();
        put(&mut headers, "inner", set, 2, false);
        let inner = headers.clone();
        put(&mut headers, "outer", HeaderSet::Both, 7, false);
        assert_eq!(headers, inner);

        put(&mut headers, "outer", HeaderSet::Both, 1, false);
        let mut alone = HeaderMap::new();
        put(&mut alone, "outer", HeaderSet::Both, 1, false);
        assert_eq!(headers, alone);
    }
}

#[test]
fn a_disabled_family_is_not_changed() {
    let mut headers = HeaderMap::new();
    put(&mut headers, "inner", HeaderSet::Ietf, 2, false);
    put(&mut headers, "outer", HeaderSet::Legacy, 7, false);
    assert_eq!(text(&headers, "x-ratelimit-remaining"), Some("7"));
    assert!(text(&headers, "ratelimit").unwrap().contains("r=2"));
    put(&mut headers, "none", HeaderSet::None, 0, false);
    assert_eq!(text(&headers, "x-ratelimit-remaining"), Some("7"));
}

/// Headers of a service behind a proxy are compared if they are well formed, and replaced otherwise.
#[test]
fn malformed_foreign_sets_are_replaced() {
    let ours_stays = |name: &'static str, lines: &[&'static str], set| {
        let mut headers = HeaderMap::new();
        let name = HeaderName::from_static(name);
        for line in lines {
            headers.append(name.clone(), HeaderValue::from_static(line));
        }
        put(&mut headers, "ours", set, 5, false);
        headers.values().any(|value| {
            let text = value.to_str().unwrap();
            text.contains("user:ours:1h")
        })
    };
    let legacy = "x-ratelimit-remaining";
    for (lines, ours) in [
        (&["4"][..], false),
        (&[" 4 "], false),
        (&["6"], true),
        (&["9", "4"], false),
        (&["9", "8"], true),
        (&["many"], true),
        (&["-1"], true),
        (&[""], true),
        (&["99999999999999999999999"], true),
    ] {
        assert_eq!(
            ours_stays(legacy, lines, HeaderSet::Legacy),
            ours,
            "{lines:?}"
        );
    }
    for (lines, ours) in [
        (&[r#""a";r=4;t=1"#][..], false),
        (&[r#""a";r=6"#], true),
        (&[r#""a";r=9, "b";t=3; r=4"#], false),
        (&[r#""a";r=9"#, r#""b";r=4"#], false),
        (&[r#""a;r=1";r=9"#], true),
        (&[r#""a\";r=1";r=9"#], true),
        (&[r#""a";rr=1;r=9"#], true),
        (&["limit=10, remaining=1"], true),
        (&[r#""unfinished;r=1"#], true),
    ] {
        assert_eq!(
            ours_stays("ratelimit", lines, HeaderSet::Ietf),
            ours,
            "{lines:?}"
        );
    }
}

/// A looser set changes no foreign line, for any number of lines.
#[test]
fn tighter_foreign_lines_are_unchanged() {
    for lines in [&["4"][..], &["9", "4"], &["4", "9", "4"]] {
        for set in [HeaderSet::Legacy, HeaderSet::Both] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("x-ratelimit-remaining", HeaderValue::from_static(line));
            }
            headers.append("x-ratelimit-limit", HeaderValue::from_static("10"));
            let before = headers.clone();
            put(&mut headers, "ours", set, 5, true);
            assert_eq!(headers, before, "{set}: {lines:?}");
        }
    }
}

#[test]
fn an_unreadable_set_is_removed_completely() {
    let mut headers = HeaderMap::new();
    for name in LEGACY {
        headers.append(name, HeaderValue::from_static("?"));
        headers.append(name, HeaderValue::from_static("!"));
    }
    put(&mut headers, "ours", HeaderSet::Legacy, 5, false);
    let mut alone = HeaderMap::new();
    put(&mut alone, "ours", HeaderSet::Legacy, 5, false);
    assert_eq!(headers, alone);
}
