//! Files that are wrong.

use super::{Directory, eventually, limit_of, limited, policy};
use crate::support::log::Log;

/// A broken variant of the file, and a part of its message.
const BROKEN: [(&str, &str); 20] = [
    ("", "the file has no limits"),
    ("[global", "limits.toml:1"),
    ("[global]\nanonymous = ", "limits.toml:2"),
    (
        "[global]\nanonymous = \"10/houre\"\n",
        "did you mean `hour`",
    ),
    ("[global]\nanonymous = 0\n", "blocked"),
    (
        "[global]\nanonymus = \"10/hour\"\n",
        "did you mean `anonymous`",
    ),
    (
        "[globl]\nanonymous = \"10/hour\"\n",
        "did you mean `global`",
    ),
    (
        "[global]\nanonymous = [\"10/hour\", \"20/hour\"]\n",
        "another window",
    ),
    (
        "[global]\nanonymous = \"10/hour\"\nanonymous = \"11/hour\"\n",
        "limits.toml:3",
    ),
    ("[[endpoints]]\nlimit = \"10/hour\"\n", "route"),
    (
        "[[endpoints]]\nroute = \"get /\"\nlimit = \"10/hour\"\n",
        "capitals",
    ),
    (
        "[[endpoints]]\nroute = \"GET /a/:id\"\nlimit = \"1/s\"\n",
        "`{id}`",
    ),
    (
        "[[endpoints]]\nroute = \"GET /a\"\ncategory = \"b\"\n",
        "category",
    ),
    (
        "[[endpoints]]\nroute = \"GET /{a}\"\nlimit = \"1/s\"\n\
         [[endpoints]]\nroute = \"GET /{b}\"\nlimit = \"1/s\"\n",
        "GET /{a}",
    ),
    (
        "[defaults]\nwarn_at = -1\n[global]\nanonymous = \"1/s\"\n",
        "warn_at",
    ),
    (
        "[defaults]\nheaders = \"ieft\"\n[global]\nanonymous = \"1/s\"\n",
        "did you mean `ietf`",
    ),
    (
        "[exempt]\nnetworks = [\"10.0.0.0/64\"]\n[global]\nanonymous = \"1/s\"\n",
        "networks[0]",
    ),
    (
        "[maintenance]\ndisabled_until = \"soon\"\n[global]\nanonymous = \"1/s\"\n",
        "disabled_until",
    ),
    (
        "[tiers]\nfree = -1\n[global]\nanonymous = \"1/s\"\n",
        "tiers",
    ),
    (
        "[global]\nanonymous = { limit = 5, window = \"1 parsec\" }\n",
        "parsec",
    ),
];

#[tokio::test]
async fn twenty_broken_files_in_a_row_change_nothing_and_are_all_reported() {
    let (log, _listening) = Log::listen();
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(1_000));
    let (limits, app) = limited(&file);
    assert_eq!(limit_of(&app).await, 1_000);
    for (index, (text, expected)) in BROKEN.into_iter().enumerate() {
        directory.write("limits.toml", text);
        let refused = limits.reload().unwrap_err().to_string();
        assert!(
            refused.contains(expected),
            "no {expected} in\n{refused}\nof\n{text}"
        );
        let status = limits.policy_status();
        assert_eq!(status.problem(), Some(refused.as_str()));
        assert_eq!((status.version(), status.failures()), (1, index as u64 + 1));
        assert_eq!(limit_of(&app).await, 1_000);
    }
    assert_eq!(
        log.about("rate_limit_policy_not_reloaded").len(),
        BROKEN.len()
    );
    directory.write("limits.toml", &policy(2_000));
    limits.reload().unwrap();
    let answer = crate::support::http::send(&app, "GET /", &[]).await;
    assert_eq!(answer.number("x-ratelimit-limit"), 2_000);
    // One for each request so far, and none forgotten.
    assert_eq!(answer.number("x-ratelimit-remaining"), 2_000 - 22);
    assert_eq!(limits.policy_status().problem(), None);
}

#[tokio::test]
async fn a_broken_file_that_is_watched_is_taken_as_soon_as_it_is_mended() {
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(10));
    let (limits, app) = limited(&file);
    limits.watch().unwrap();
    for (index, (text, _)) in BROKEN.into_iter().enumerate().take(3) {
        directory.write("limits.toml", text);
        eventually("reported", || {
            limits.policy_status().failures() == index as u64 + 1
        });
    }
    assert_eq!(limit_of(&app).await, 10);
    directory.write("limits.toml", &policy(20));
    eventually("read", || limits.policy_status().version() == 2);
    assert_eq!(limit_of(&app).await, 20);
}
