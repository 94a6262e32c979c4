//! Whatever the bytes, there is an answer: a policy, or what is wrong.

use proptest::prelude::*;
use tollgate::config::Source;

const FILES: [&str; 2] = [include_str!("spec.toml"), include_str!("spec.json")];

/// Reads a text as both languages, and shows what comes of it in every way there is.
fn survives(text: &str) {
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
                assert!(!problem.message().is_empty());
            }
        }
    }
}

/// What a change puts into a file.
fn scraps() -> impl Strategy<Value = String> {
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
    fn files_with_mistakes(
        file in 0..FILES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..12, scraps()), 1..6),
    ) {
        let mut text = FILES[file].to_owned();
        for (at, removed, scrap) in changes {
            let mut start = at.index(text.len() + 1);
            while !text.is_char_boundary(start) {
                start -= 1;
            }
            let mut end = (start + removed).min(text.len());
            while !text.is_char_boundary(end) {
                end += 1;
            }
            text.replace_range(start..end, &scrap);
        }
        survives(&text);
    }

    #[test]
    fn any_text(text in any::<String>()) {
        survives(&text);
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        survives(&String::from_utf8_lossy(&bytes));
    }
}

/// Large and of nothing but mistakes: told in no time, and not all of them.
#[test]
fn a_lot_of_garbage() {
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

/// Finding the place of each mistake once went through all endpoints before it, so that a file
/// of a megabyte took minutes.
#[test]
fn mistakes_in_every_endpoint_of_many() {
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

/// A thousand mistakes: the first hundred, and how many more.
#[test]
fn more_mistakes_than_anybody_reads() {
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

/// As many endpoints as people have, and a good deal more.
#[test]
fn a_large_file_that_is_fine() {
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

/// Each endpoint was told the names of all categories there are: gigabytes, for a file of two
/// megabytes.
#[test]
fn what_is_told_of_many_problems_stays_short() {
    let categories = (0..500).map(|at| format!("[categories.c{at}]\nlimit = '1/s'\n"));
    let endpoint =
        |at: u32| format!("[[endpoints]]\nroute = 'GET /{at}'\ncategory = 'unknown-{at}'\n");
    let text: String = categories.chain((0..500).map(endpoint)).collect();
    let error = super::toml(&text).unwrap_err();
    assert_eq!(error.problems().len() + error.more(), 500);
    let first = error.problems().next().unwrap();
    let expected = first.expected().unwrap();
    assert_eq!(expected, "one of the 500 categories of the policy");
}
