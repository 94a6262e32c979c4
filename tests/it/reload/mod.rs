//! A policy file that changes while the layer runs.

mod alerts;
mod broken;
mod keys;
mod pipes;
mod swaps;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use tollgate::config::Config;
use tollgate::{ManualClock, RateLimitLayer};

use crate::support::http::{echo, send};

/// A directory of its own, which goes away with it.
pub(super) struct Directory(PathBuf);

impl Directory {
    pub(super) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tollgate-reload-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(super) fn make_pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

/// A policy of one limit.
pub(super) fn policy(limit: u32) -> String {
    format!("[global]\nanonymous = \"{limit}/hour\"\n")
}

/// A layer for this file, on a clock that stands still, and something behind it.
pub(super) fn limited(file: &Path) -> (RateLimitLayer, Router) {
    let config = Config::from_file(file).unwrap();
    let limits = config.into_layer().clock(ManualClock::new()).build();
    let limits = limits.unwrap();
    (limits.clone(), echo().layer(limits))
}

/// Waits until it is so; fails after much longer than it should take.
pub(super) fn eventually(what: &str, is_so: impl Fn() -> bool) -> Duration {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "not {what}");
        thread::sleep(Duration::from_millis(2));
    }
    began.elapsed()
}

pub(super) async fn limit_of(app: &Router) -> u64 {
    send(app, "GET /", &[]).await.number("x-ratelimit-limit")
}

#[tokio::test]
async fn reload_reads_the_file_again() {
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(10));
    let (limits, app) = limited(&file);
    assert_eq!(limit_of(&app).await, 10);
    directory.write("limits.toml", &policy(20));
    assert_eq!(limit_of(&app).await, 10, "no request so far");
    assert_eq!(limits.reload().unwrap().version(), 2);
    let answer = send(&app, "GET /", &[]).await;
    let stands = |name| answer.number(name);
    assert_eq!(
        (stands("x-ratelimit-limit"), stands("x-ratelimit-remaining")),
        (20, 17),
        "and nothing is forgotten"
    );
    // A text stays what it is.
    let config = Config::from_toml(policy(10)).unwrap();
    let limits = config.into_layer().build().unwrap();
    assert!(limits.reload().is_err());
    assert!(limits.watch().is_err());
}

#[tokio::test]
async fn headers_and_identity_of_the_file_are_reloaded() {
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(10));
    let (limits, app) = limited(&file);
    let said = "[defaults]\nheaders = \"ietf\"\n[identity]\ntrusted_user_header = \"x-user\"\n";
    let rules = "[global]\nauthenticated = \"7/hour\"\n";
    directory.write("limits.toml", &format!("{said}{rules}"));
    limits.reload().unwrap();
    let answer = send(&app, "GET /", &[("x-user", "alice")]).await;
    assert_eq!(answer.header("x-ratelimit-limit"), None);
    let value = answer.header("ratelimit").unwrap();
    assert!(value.contains("\"user:global:1h\";r=6"), "{value}");

    // Settings that the file no longer has are back at their defaults.
    directory.write("limits.toml", &policy(10));
    limits.reload().unwrap();
    let answer = send(&app, "GET /", &[("x-user", "alice")]).await;
    assert_eq!(answer.header("x-ratelimit-policy"), Some("ip:global:1h"));
}

#[tokio::test]
async fn settings_from_code_are_kept() {
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(10));
    let limits = Config::from_file(file).unwrap().into_layer();
    let limits = limits
        .headers(tollgate::headers::HeaderSet::Both)
        .identify_with(|head| head.header("x-name").map(tollgate::Identity::user))
        .build()
        .unwrap();
    let app = echo().layer(limits.clone());
    let text = "[defaults]\nheaders = \"none\"\n[global]\nauthenticated = \"5/hour\"\n";
    directory.write("limits.toml", text);
    limits.reload().unwrap();
    let answer = send(&app, "GET /", &[("x-name", "alice")]).await;
    assert_eq!(answer.header("x-ratelimit-policy"), Some("user:global:1h"));
}
