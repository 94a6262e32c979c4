//! Pipes in place of policy and key files. To open one blocks until a process writes to it.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tollgate::config::Source;

use super::{Directory, eventually, limit_of, limited, make_pipe, policy};

const SECRET: &str = "a secret that is long enough for HS256";
const SPECIAL: &str = "the path is a pipe, a socket or a device";
const HELP: &str = "write the contents to a regular file";

/// Returns the result of an operation that must not block.
fn unblocked<T: Send + 'static>(operation: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, result) = mpsc::channel();
    thread::spawn(move || sender.send(operation()));
    let result = result.recv_timeout(Duration::from_secs(20));
    result.expect("the operation blocks")
}

fn with_key(key: &str, algorithm: &str) -> String {
    format!(
        "{}[identity.jwt]\nalgorithms = [\"{algorithm}\"]\n{key} = \"key\"\n",
        policy(10)
    )
}

fn read_problem(file: &Path) -> String {
    let source = Source::file(file);
    unblocked(move || source.read().unwrap_err().to_string())
}

#[test]
fn pipe_in_place_of_a_policy_or_key_file_is_rejected_at_the_start() {
    let directory = Directory::new();
    let file = directory.path("pipe.toml");
    make_pipe(&file);
    let problem = read_problem(&file);
    for expected in [SPECIAL, "expected a policy file", HELP] {
        assert!(problem.contains(expected), "{problem}");
    }
    make_pipe(&directory.path("key"));
    for (key, algorithm) in [
        ("secret_file", "HS256"),
        ("public_key_file", "RS256"),
        ("jwks_file", "RS256"),
    ] {
        let file = directory.write("limits.toml", &with_key(key, algorithm));
        let problem = read_problem(&file);
        let message = format!("identity.jwt.{key}: `key`: {SPECIAL}");
        for expected in [&*message, HELP] {
            assert!(problem.contains(expected), "{problem}");
        }
    }
}

#[tokio::test]
async fn pipe_in_place_of_the_policy_file_fails_a_reload() {
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(10));
    let (limits, app) = limited(&file);
    fs::remove_file(&file).unwrap();
    make_pipe(&file);
    let reloaded = limits.clone();
    let error = unblocked(move || reloaded.reload().unwrap_err().to_string());
    assert!(error.contains(SPECIAL), "{error}");
    assert_eq!(limit_of(&app).await, 10);
}

/// Bug: the reload blocked, and with it every later one and the end of the process.
#[tokio::test]
async fn pipe_in_place_of_a_key_file_fails_a_reload() {
    let directory = Directory::new();
    let key = directory.write("key", SECRET);
    let file = directory.write("limits.toml", &with_key("secret_file", "HS256"));
    let (limits, app) = limited(&file);
    fs::remove_file(&key).unwrap();
    make_pipe(&key);
    let reloaded = limits.clone();
    let error = unblocked(move || reloaded.reload().unwrap_err().to_string());
    assert!(error.contains(SPECIAL), "{error}");
    assert_eq!(limit_of(&app).await, 10);
    fs::remove_file(&key).unwrap();
    directory.write("key", SECRET);
    assert_eq!(limits.reload().unwrap().version(), 2);
}

/// Bug: the thread of the watch blocked, and no failure was counted.
#[tokio::test]
async fn watch_reports_a_pipe_in_place_of_a_key_file_and_loads_its_replacement() {
    let directory = Directory::new();
    let key = directory.write("key", SECRET);
    let file = directory.write("limits.toml", &with_key("secret_file", "HS256"));
    let (limits, _) = limited(&file);
    limits.watch().unwrap();
    fs::remove_file(&key).unwrap();
    make_pipe(&key);
    eventually("rejected", || {
        let status = limits.policy_status();
        status
            .problem()
            .is_some_and(|problem| problem.contains(SPECIAL))
    });
    assert!(limits.policy_status().failures() > 0);
    fs::remove_file(&key).unwrap();
    directory.write("key", "another secret, also long enough for HS256");
    eventually("read", || limits.policy_status().version() == 2);
    assert_eq!(limits.policy_status().problem(), None);
}
