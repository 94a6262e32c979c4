//! Warnings about the configuration of the server.

use std::time::{Duration, Instant};

use tokio::time::sleep;
use tollgate::{RedisStore, RedisStoreBuilder, Store as _};

use super::{PATIENCE, Server, counter, take, user};
use crate::support::log::Log;

/// Connects with a user of these permissions. Returns the lines of all warnings.
async fn warnings(server: &Server, prefix: &str, permissions: &[&str]) -> Vec<String> {
    warnings_with(server, prefix, permissions, |builder| builder).await
}

async fn warnings_with(
    server: &Server,
    prefix: &str,
    permissions: &[&str],
    adjust: fn(RedisStoreBuilder) -> RedisStoreBuilder,
) -> Vec<String> {
    let user_of_store = ["ACL", "SETUSER", "store", "reset", "on", ">secret", "~*"];
    server.run::<String>(&[&user_of_store, permissions].concat());
    let (log, _listening) = Log::listen();
    let url = server.url().replace("://", "://store:secret@");
    let builder = RedisStore::builder(&url).prefix(prefix);
    let store = adjust(builder).build().unwrap();
    let commands = || server.run::<String>(&["INFO", "commandstats"]);
    server.run::<String>(&["CONFIG", "RESETSTAT"]);
    // SCAN is the last check, for the default prefix. A rejected call is counted as well.
    let last = match prefix {
        "tollgate" => "cmdstat_scan:",
        _ => "cmdstat_eval:",
    };
    let started = Instant::now();
    while !commands().contains(last) {
        assert!(started.elapsed() < PATIENCE, "{}", log.text());
        sleep(Duration::from_millis(10)).await;
    }
    sleep(Duration::from_millis(200)).await;
    assert!(store.health().is_healthy());
    log.about("rate_limit_configuration_warning")
}

#[tokio::test]
async fn suspicious_settings_are_warned_about_once() {
    let server = Server::start();
    let all = ["+@all"];
    assert_eq!(warnings(&server, "tollgate", &all).await, [""; 0]);

    // Keys of this crate, of both versions, are not foreign.
    let own = RedisStore::builder(&server.url()).deadline(PATIENCE);
    let own = own.build().unwrap();
    take(&own, &user("alice"), &counter("log", "5/day, sliding-log"))
        .await
        .unwrap();
    server.run::<String>(&["SET", "tollgate:v1:old", "x"]);
    server.run::<String>(&["SET", "session:1", "x"]);
    server.run::<String>(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    assert_eq!(warnings(&server, "tollgate", &all).await, [""; 0]);

    server.run::<String>(&["SET", "tollgate:session:1", "x"]);
    server.run::<String>(&["CONFIG", "SET", "maxmemory", "100mb"]);
    let found = warnings(&server, "tollgate", &["+@all", "-time"]).await;
    let [time, eviction, prefix] = &found[..] else {
        panic!("three warnings: {found:?}");
    };
    for (line, code, fix) in [
        (time, "redis-time-refused", "use_client_clock"),
        (eviction, "redis-eviction", "noeviction"),
        (prefix, "redis-shared-prefix", "RedisStoreBuilder::prefix"),
    ] {
        assert!(line.contains(" WARN "), "{line}");
        assert!(line.contains(&format!("code=\"{code}\"")), "{line}");
        assert!(line.contains(fix), "{line}");
    }
    // Keys of other applications may contain secrets.
    assert!(prefix.contains("(1 in one page of SCAN)"), "{prefix}");
    assert!(!prefix.contains("session"), "{prefix}");
    let other = warnings(&server, "shop", &all).await;
    assert!(
        other.len() == 1 && other[0].contains("redis-eviction"),
        "{other:?}"
    );
}

/// Bug: such a key ended the check without a warning.
#[tokio::test]
async fn foreign_keys_that_are_not_utf_8_are_warned_about() {
    let server = Server::start();
    let mut set = redis::cmd("SET");
    set.arg(b"tollgate:\xff").arg("x");
    set.exec(&mut server.connect()).unwrap();
    let found = warnings(&server, "tollgate", &["+@all"]).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("redis-shared-prefix"), "{found:?}");
}

/// The checks need permissions that a store does not need otherwise.
#[tokio::test]
async fn missing_permissions_for_the_checks_are_no_warning() {
    let server = Server::start();
    server.run::<String>(&["SET", "tollgate:session:1", "x"]);
    server.run::<String>(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    server.run::<String>(&["CONFIG", "SET", "maxmemory", "100mb"]);
    let few = ["+@all", "-info", "-scan"];
    assert_eq!(warnings(&server, "tollgate", &few).await, [""; 0]);
}

/// The client clock needs no `TIME`.
#[tokio::test]
async fn client_clock_needs_no_server_clock() {
    let server = Server::start();
    let adjust = RedisStoreBuilder::use_client_clock;
    let found = warnings_with(&server, "tollgate", &["+@all", "-time"], adjust).await;
    assert_eq!(found, [""; 0]);
}
