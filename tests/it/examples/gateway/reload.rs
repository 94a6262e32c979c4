//! Hot reload: no request and no count is lost, and a wrong file changes nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Caller, Gateway, OWN, usage_of};
use crate::examples::process::{Example, PATIENCE};

const GATEWAY_TOML: &str = include_str!("../../../../examples/gateway/gateway.toml");

/// The gateway's policy file with another limit for reading secrets.
fn secrets(limit: &str) -> String {
    let changed = GATEWAY_TOML.replacen("\"500/hour\"", &format!("\"{limit}\""), 1);
    assert_ne!(changed, GATEWAY_TOML, "there is no such number");
    changed
}

/// A file in its own directory, because some ways to replace it create other files.
struct File {
    directory: PathBuf,
}

impl File {
    fn new(test: &str) -> Self {
        let name = format!("reload-{test}-{}", std::process::id());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let file = Self { directory };
        file.write(GATEWAY_TOML);
        file
    }

    fn path(&self) -> PathBuf {
        self.directory.join("limits.toml")
    }

    fn write(&self, text: &str) {
        fs::write(self.path(), text).unwrap();
    }

    /// Replaces the file by a rename, as editors do.
    fn rename_over(&self, text: &str) {
        let new = self.directory.join("limits.toml~");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.path()).unwrap();
    }

    /// Replaces the file as a Kubernetes `ConfigMap` does: it is a link into a directory that is a link,
    /// and that link is swapped.
    #[cfg(unix)]
    fn swap_link(&self, version: &str, text: &str) {
        use std::os::unix::fs::symlink;

        let at = |name: &str| self.directory.join(name);
        fs::create_dir(at(version)).unwrap();
        fs::write(at(version).join("limits.toml"), text).unwrap();
        symlink(version, at("..data_tmp")).unwrap();
        fs::rename(at("..data_tmp"), at("..data")).unwrap();
        if !self.path().is_symlink() {
            fs::remove_file(self.path()).unwrap();
            symlink("..data/limits.toml", self.path()).unwrap();
        }
    }
}

/// Sends requests of new callers until the limit for reading secrets is this one. Returns how long
/// that took.
async fn until_limit_is(gateway: &Gateway, limit: u64) -> Duration {
    let begin = Instant::now();
    for number in 0_usize.. {
        let caller = Caller::user(&format!("user {number} of {limit}"), "free");
        let answer = gateway.send("GET /v1/secrets/42", &caller).await;
        if answer.number("x-ratelimit-limit") == limit {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "the limit is never {limit}");
    }
    begin.elapsed()
}

/// Sends requests of callers with enough quota until stopped. Returns their number.
fn load(gateway: &Gateway, stop: &Arc<AtomicBool>) -> tokio::task::JoinHandle<u64> {
    let (client, stop) = (gateway.example.version_1(), Arc::clone(stop));
    tokio::spawn(async move {
        let mut sent = 0_u64;
        while !stop.load(Ordering::Relaxed) {
            let caller = Caller::user(&format!("customer {}", sent / 900), "free");
            for _ in 0..10 {
                let answer = caller.send(&client, "GET /v1/projects").await;
                let expected = ("user:global:1h", 1000, 999 - sent % 900);
                assert_eq!((answer.status, usage_of(&answer)), (200, expected));
                sent += 1;
            }
        }
        sent
    })
}

#[tokio::test]
async fn a_changed_limit_counts_at_once_and_no_count_is_lost() {
    let file = File::new("change");
    let path = file.path();
    let gateway = Gateway::start_with(&[("TOLLGATE_CONFIG", path.to_str().unwrap())]).await;
    let alice = Caller::user("alice", "free");
    let request = || gateway.send("GET /v1/secrets/42", &alice);
    for left in [499, 498, 497] {
        assert_eq!(usage_of(&request().await), ("user:secrets:1h", 500, left));
    }

    let stop = Arc::new(AtomicBool::new(false));
    let customers = load(&gateway, &stop);
    let mut quickest = Duration::MAX;
    let mut changed = async |limit, write: &dyn Fn(&str)| {
        write(&secrets(&format!("{limit}/hour")));
        quickest = quickest.min(until_limit_is(&gateway, limit).await);
    };
    changed(700, &|text| file.write(text)).await;
    assert_eq!(usage_of(&request().await), ("user:secrets:1h", 700, 696));
    changed(4, &|text| file.rename_over(text)).await;
    assert_eq!(request().await.status, 429, "four were enough");
    changed(5, &|text| file.rename_over(text)).await;
    assert_eq!(usage_of(&request().await), ("user:secrets:1h", 5, 0));
    #[cfg(unix)]
    for (version, limit) in [("..one", 600), ("..two", 800)] {
        changed(limit, &|text| file.swap_link(version, text)).await;
    }
    // On a busy machine, one of them may take longer.
    assert!(quickest < Duration::from_secs(1), "{quickest:?}");

    stop.store(true, Ordering::Relaxed);
    assert!(
        customers.await.unwrap() > 0,
        "no request was sent meanwhile"
    );
}

/// Twenty wrong files.
const MISTAKES: [(&str, &str); 20] = [
    ("\"500/hour\"", "\"500/houre\""),
    ("\"500/hour\"", "\"0/hour\""),
    ("\"500/hour\"", "500"),
    ("\"500/hour\"", "\"500/hour"),
    ("[tiers]", "[tiers"),
    ("[tiers]", "[teirs]"),
    ("team = 5", "team = 0"),
    ("team = 5", "team = \"five\""),
    ("default = \"free\"", "default = \"fre\""),
    ("warn_at = 0.8", "warn_at = -1"),
    ("headers = \"legacy\"", "headers = \"legasy\""),
    ("authenticated =", "authentcated ="),
    ("roles =", "rolls ="),
    ("category = \"secrets\"", "category = \"secret\""),
    ("route = \"GET /v1/secrets\"", "route = \"GET v1/secrets\""),
    (
        "route = \"GET /v1/secrets\"",
        "route = \"GET /v1/secrets/{name}\"",
    ),
    ("name = \"login\"", "name = \"signup\""),
    ("{retry_in}", "{retry}"),
    ("[categories.ai]", "[categories.mcp]"),
    ("tiers = { team", "tiers = { taem"),
];

#[tokio::test]
async fn a_broken_file_changes_nothing_and_is_logged() {
    let file = File::new("broken");
    let path = file.path();
    let config = ("TOLLGATE_CONFIG", path.to_str().unwrap());
    let variables = [OWN[0], OWN[1], config];
    let mut gateway = Gateway::of(Example::start_with_stderr("gateway", &variables).await);
    let alice = Caller::user("alice", "free");
    for (number, (right, wrong)) in MISTAKES.into_iter().enumerate() {
        // All texts differ, also where the mistakes are similar.
        let text = GATEWAY_TOML.replacen(right, wrong, 1);
        assert_ne!(text, GATEWAY_TOML, "{right} is not there");
        file.write(&format!("{text}\n# {number}\n"));
        let event = "rate_limit_policy_not_reloaded";
        gateway.example.stderr_line(event).await;
        // The log shows the line of the file.
        gateway.example.stderr_line(wrong).await;
        let answer = gateway.send("GET /v1/secrets/42", &alice).await;
        let left = 499 - number as u64;
        assert_eq!(usage_of(&answer), ("user:secrets:1h", 500, left), "{wrong}");
    }
    file.write(&secrets("21/hour"));
    gateway
        .example
        .stderr_line("rate_limit_policy_reloaded")
        .await;
    let answer = gateway.send("GET /v1/secrets/42", &alice).await;
    assert_eq!(usage_of(&answer), ("user:secrets:1h", 21, 0));
}
