//! Arbitrary input gives a policy or an error, never a panic or a hang.

use proptest::prelude::*;
use tollgate::config::Source;

const FILES: [&str; 2] = [include_str!("spec.toml"), include_str!("spec.json")];

/// Reads a text as TOML and as JSON. An error must render in every format.
fn check_read(text: &str) {
    for source in [Source::toml(text), Source::json(text)] {
        let variables = [
            ("TOLLGATE_GLOBAL__AUTHENTICATED", "5/s"),
            ("JWT_SECRET", "secret"),
        ];
        if let Err(error) = source.variables(variables).read() {
            assert!(error.problems().len() > 0);
            let shown = error.to_string();
            assert!(shown.starts_with("error: "), "{shown}");
            assert!(error.to_ansi().len() > shown.len());
            let json: serde_json::Value = serde_json::from_str(&error.to_json()).unwrap();
            assert!(json["problems"].is_array());
            for problem in error.problems() {
                assert!(!problem.message.is_empty());
            }
        }
    }
}

/// Generates text that a change inserts into a file.
fn insertions() -> impl Strategy<Value = String> {
    let fixed = proptest::sample::select(vec![
        "",
        "=",
        "[",
        "]",
        "[[",
        "{",
        "}",
        "\"",
        "'",
        "\"\"\"",
        "\n",
        "\r\n",
        "\t",
        ",",
        ":",
        ".",
        "#",
        "\\",
        "\\u",
        "\u{0}",
        "\u{feff}",
        "é",
        "日本",
        "🚦",
        "\u{202e}",
        "-1",
        "0",
        "99999999999999999999",
        "1e999",
        "nan",
        "inf",
        "true",
        "null",
        "[]",
        "{}",
        "[endpoints]",
        "[[endpoints]]",
        "default",
        "limit = ",
        "\"limit\": ",
        "secret = \"x",
        "2026-12-01",
        "unlimited",
        "0/hour",
        "/",
        "{id}",
    ]);
    prop_oneof![4 => fixed.prop_map(str::to_owned), 1 => any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn changed_files_give_a_policy_or_an_error(
        file in 0..FILES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..12, insertions()), 1..6),
    ) {
        let mut text = FILES[file].to_owned();
        for (at, removed, insertion) in changes {
            let mut start = at.index(text.len() + 1);
            while !text.is_char_boundary(start) {
                start -= 1;
            }
            let mut end = (start + removed).min(text.len());
            while !text.is_char_boundary(end) {
                end += 1;
            }
            text.replace_range(start..end, &insertion);
        }
        check_read(&text);
    }

    #[test]
    fn any_text_gives_a_policy_or_an_error(text in any::<String>()) {
        check_read(&text);
    }

    #[test]
    fn any_bytes_give_a_policy_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        check_read(&String::from_utf8_lossy(&bytes));
    }
}

/// Files of 300 KiB that consist of errors.
#[test]
fn report_of_a_large_invalid_file_is_short() {
    const LENGTH: usize = 300 << 10;
    for part in [
        "[",
        "{",
        "=\n",
        "\"",
        "a",
        "a.",
        "[[a]]\n",
        "[a.b]\n",
        "x = 1\n",
        "\u{0}",
        "[\"a\",",
        "{\"a\":",
        "é\n",
        "x = [1, 2]\n",
    ] {
        let text = part.repeat(LENGTH / part.len());
        for source in [Source::toml(&*text), Source::json(&*text)] {
            let error = source.variables::<&str, &str>([]).read().unwrap_err();
            let shown = error.to_string();
            assert!(shown.len() < 64 << 10, "{} bytes for {part:?}", shown.len());
        }
    }
}

/// Bug: locating an error scanned all endpoints before it, so that a file of 1 MB took minutes.
#[test]
fn errors_in_20_000_endpoints_are_counted_and_capped() {
    for endpoint in [
        "limt = 1\n",
        "route = 'x'\n",
        "route = '/x'\nlimit = '1/s'\n",
        "",
    ] {
        let text = format!("[[endpoints]]\n{endpoint}").repeat(20_000);
        let error = super::toml(&text).unwrap_err();
        assert_eq!(error.problems().len(), 100);
        assert!(error.more() > 10_000, "{}", error.more());
    }
}

#[test]
fn problems_beyond_the_first_100_are_only_counted() {
    let text = "[[endpoints]]\nlimt = 1\n".repeat(1_000);
    let error = super::toml(&text).unwrap_err();
    assert_eq!(error.problems().len(), 100);
    assert!(error.more() >= 900, "{}", error.more());
    assert!(
        error
            .to_string()
            .ends_with(&format!("and {} more problems", error.more()))
    );
}

#[test]
fn file_with_10_000_endpoints_is_accepted() {
    use std::fmt::Write;

    let mut text = "[categories.all]\nlimit = '100/s'\n".to_owned();
    for number in 0..10_000 {
        let _ = write!(
            text,
            "[[endpoints]]\nroute = 'GET /v1/{number}/{{id}}'\ncategory = 'all'\n"
        );
    }
    assert!(super::toml(&text).is_ok());
}

/// Bug: each problem listed all categories, which made gigabytes of messages for a file of 2 MB.
#[test]
fn message_of_an_unknown_category_does_not_list_500_categories() {
    let categories = (0..500).map(|at| format!("[categories.c{at}]\nlimit = '1/s'\n"));
    let endpoint =
        |at: u32| format!("[[endpoints]]\nroute = 'GET /{at}'\ncategory = 'unknown-{at}'\n");
    let text: String = categories.chain((0..500).map(endpoint)).collect();
    let error = super::toml(&text).unwrap_err();
    assert_eq!(error.problems().len() + error.more(), 500);
    let first = error.problems().next().unwrap();
    let expected = first.expected.as_deref().unwrap();
    assert_eq!(expected, "one of the 500 categories of the policy");
}
