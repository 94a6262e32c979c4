//! Keys that change while the policy does not.

use std::fs;
use std::io::Write as _;
use std::thread;
use std::time::Duration;

use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::json;
use tollgate::config::Source;

use super::{Directory, eventually, limited, policy};
use crate::support::http::send;

fn token(secret: &str) -> String {
    let claims = json!({ "sub": "alice", "exp": 4_102_444_800_u64 });
    let key = EncodingKey::from_secret(secret.as_bytes());
    format!(
        "Bearer {}",
        encode(&Header::default(), &claims, &key).unwrap()
    )
}

#[tokio::test]
async fn a_key_file_is_watched_too() {
    let old = "the first of two secrets, long enough for HS256";
    let new = "the second of two secrets, long enough for HS256";
    let directory = Directory::new();
    directory.write("secret", old);
    let text = "[global]\nauthenticated = \"10/hour\"\n\
                [identity.jwt]\nalgorithms = [\"HS256\"]\nsecret_file = \"secret\"\n";
    let file = directory.write("limits.toml", text);
    let (limits, app) = limited(&file);
    limits.watch().unwrap();
    let policy_of = async |secret: &str| {
        let token = token(secret);
        let answer = send(&app, "GET /", &[("authorization", &token)]).await;
        answer.header("x-ratelimit-policy").map(str::to_owned)
    };
    assert_eq!(policy_of(old).await.as_deref(), Some("user:global:1h"));
    assert_eq!(policy_of(new).await.as_deref(), Some("ip:global:1h"));
    directory.write("secret", new);
    eventually("read", || limits.policy_status().version() == 2);
    assert_eq!(policy_of(old).await.as_deref(), Some("ip:global:1h"));
    assert_eq!(policy_of(new).await.as_deref(), Some("user:global:1h"));
}

/// Only files that a valid policy had named were watched, so a key that came after the policy
/// that needs it was never noticed.
#[tokio::test]
async fn a_key_may_come_after_the_policy_that_names_it() {
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(10));
    let (limits, _) = limited(&file);
    limits.watch().unwrap();
    let jwt = "[identity.jwt]\nalgorithms = [\"HS256\"]\nsecret_file = \"secret\"\n";
    directory.write("limits.toml", &format!("{}{jwt}", policy(20)));
    eventually("refused", || limits.policy_status().failures() == 1);
    directory.write("secret", "a secret that is long enough for HS256");
    eventually("read", || limits.policy_status().version() == 2);
    assert_eq!(limits.policy_status().problem(), None);
    assert_eq!(
        limits.policy_status().reloads(),
        1,
        "one change, one reload"
    );
}

/// It would have been read until there was no memory left.
#[test]
fn device_in_place_of_a_key_file_is_rejected() {
    let jwt = "[identity.jwt]\nalgorithms = [\"HS256\"]\nsecret_file = \"/dev/zero\"\n";
    let read = Source::toml(format!("{}{jwt}", policy(10))).read();
    let message = read.unwrap_err().to_string();
    assert!(
        message.contains("`/dev/zero`: the path is a pipe, a socket or a device"),
        "{message}"
    );
}

/// Before, the rename of a key file completed the policy file, which was written in place.
#[tokio::test]
async fn a_renamed_key_loads_no_half_written_policy() {
    let directory = Directory::new();
    directory.write("secret", "a secret that is long enough for HS256");
    let jwt = "[identity.jwt]\nalgorithms = [\"HS256\"]\nsecret_file = \"secret\"\n";
    let file = directory.write("limits.toml", &format!("{}{jwt}", policy(10)));
    let (limits, _) = limited(&file);
    limits.watch().unwrap();
    directory.write("limits.toml", &format!("{}{jwt}", policy(20)));
    let new = directory.write("secret.new", "another secret, also long enough for HS256");
    fs::rename(new, directory.path("secret")).unwrap();
    thread::sleep(Duration::from_millis(400));
    let login = "[[endpoints]]\nroute = \"POST /login\"\nlimit = \"5/hour\"\n";
    let mut open = fs::File::options().append(true).open(&file).unwrap();
    open.write_all(login.as_bytes()).unwrap();
    assert_eq!(limits.policy_status().version(), 1, "loaded in between");
    eventually("read", || limits.policy_status().version() == 2);
    assert_eq!(limits.policy_status().failures(), 0);
}
