//! `tollgate explain`.

use serde_json::{Value, json};

use crate::support::{GOOD, MAINTENANCE_END, TestDir, WRONG};

fn explained(dir: &TestDir, args: &[&str]) -> Value {
    let command = [&["explain", "limits.toml", "--format", "json"], args].concat();
    let run = dir.run(&command);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""), "{args:?}");
    run.json()
}

/// Returns the policy and the counter of each rule that counts the request.
fn counted(report: &Value) -> Vec<(&str, &str)> {
    let counted = report["counted_by"].as_array().unwrap().iter();
    counted
        .map(|by| {
            (
                by["policy"].as_str().unwrap(),
                by["counter"].as_str().unwrap(),
            )
        })
        .collect()
}

const AFTER_MAINTENANCE: [&str; 2] = ["--at", MAINTENANCE_END];

#[test]
fn identity_tier_roles_and_address_select_the_counters() {
    let dir = TestDir::new("explain").with("limits.toml", GOOD);
    let request = ["--request", "GET /v1/secrets/42"];
    let explain = |args: &[&str]| explained(&dir, &[&request, &AFTER_MAINTENANCE, args].concat());

    let report = explain(&["--user", "alice", "--tenant", "acme", "--tier", "team"]);
    assert_eq!(report["request"], "GET /v1/secrets/42");
    assert_eq!(report["caller"], "user=alice");
    assert_eq!(report["endpoint"], "GET /v1/secrets/{id}");
    assert_eq!(
        report["tier"],
        json!({ "name": "team", "multiplier": 5.0, "from": "identity" })
    );
    assert_eq!(report["exempt"], Value::Null);
    assert_eq!(
        counted(&report),
        [
            ("user:secrets:1h", "user=alice"),
            ("user:global:1h", "user=alice"),
            ("tenant:tenant:1d", "tenant=acme"),
        ]
    );
    assert_eq!(
        report["counted_by"][0],
        json!({
            "kind": "category",
            "rule": "secrets",
            "policy": "user:secrets:1h",
            "counter": "user=alice",
            "limit": "2500/1h",
            "base": "500/1h",
            "scaling": "times",
            "times": 5.0,
            "cost": 1,
            "count": "all",
            "mode": "enforce",
            "quiet": false,
            "on_store_failure": "local",
            "message": null,
            "suggestion": "Send fewer requests.",
        })
    );
    assert_eq!(report["counted_by"][2]["mode"], "dry-run");

    let report = explain(&["--ip", "203.0.113.9"]);
    assert_eq!(counted(&report)[0], ("ip:secrets:1h", "ip=203.0.113.9"));
    let report = explain(&["--dimension", "api-key=k1"]);
    assert_eq!(counted(&report)[0], ("api-key:secrets:1h", "api-key=k1"));
    // The user names the caller, in any order of the arguments.
    let report = explain(&["--dimension", "device=d1", "--dimension", "user=bob"]);
    assert_eq!(report["caller"], "user=bob");
    let report = explain(&["--user", "alice", "--role", "editor", "--role", "service"]);
    assert_eq!(report["exempt"]["by"], "role");
    assert_eq!(report["counted_by"], json!([]));
    let report = explain(&["--ip", "10.1.2.3"]);
    assert_eq!(
        report["exempt"]["because"],
        "the network 10.0.0.0/8 is exempt"
    );
    let report = explain(&["--user", "alice", "--tier", "gold"]);
    assert_eq!(
        report["tier"],
        json!({ "name": "free", "multiplier": 1.0, "from": "unknown" })
    );
}

#[test]
fn rules_that_do_not_count_have_a_reason() {
    let dir = TestDir::new("why-not").with("limits.toml", GOOD);
    let request = ["--request", "POST /login", "--user", "alice"];
    let report = explained(&dir, &[&request[..], &AFTER_MAINTENANCE].concat());
    assert_eq!(
        report["not_counted_by"],
        json!([
            { "kind": "global", "rule": "global", "why": "only-anonymous",
              "because": "it applies to unauthenticated callers" },
            { "kind": "always-on", "rule": "tenant", "why": "lacks",
              "because": "the caller has no `tenant`" },
        ])
    );
}

#[test]
fn maintenance_ends_at_its_end_to_the_microsecond() {
    let dir = TestDir::new("maintenance").with("limits.toml", GOOD);
    for (at, exempt) in [
        ("2026-12-01T05:59:59.999999Z", json!("maintenance")),
        ("2026-12-01T07:00:00+01:00", Value::Null),
    ] {
        let report = explained(&dir, &["--request", "GET /", "--at", at]);
        assert_eq!(report["exempt"]["by"], exempt, "{at}");
    }
}

#[test]
fn ipv6_prefix_of_the_file_selects_the_counter() {
    let request = ["--request", "GET /", "--ip", "2001:db8:1:2:3:4:5:6"];
    let args = [&request[..], &AFTER_MAINTENANCE].concat();
    let dir = TestDir::new("prefix-64").with("limits.toml", GOOD);
    assert_eq!(explained(&dir, &args)["caller"], "ip=2001:db8:1:2::");
    let text = format!("{GOOD}\n[identity.ip]\nipv6_prefix = 48\n");
    let dir = TestDir::new("prefix-48").with("limits.toml", &text);
    assert_eq!(explained(&dir, &args)["caller"], "ip=2001:db8:1::");
}

#[test]
fn address_of_a_trusted_proxy_is_never_exempt() {
    let text = format!("{GOOD}\n[identity.ip]\ntrusted_proxies = ['10.0.0.0/24']\n");
    let dir = TestDir::new("proxy").with("limits.toml", &text);
    for (ip, exempt) in [("10.0.0.7", Value::Null), ("10.0.1.7", json!("network"))] {
        let args = [&["--request", "GET /", "--ip", ip], &AFTER_MAINTENANCE[..]].concat();
        let report = explained(&dir, &args);
        assert_eq!(report["exempt"]["by"], exempt, "{ip}");
        assert_eq!(report["caller"], format!("ip={ip}"));
    }
}

#[test]
fn problems_of_the_file_are_printed_instead_of_an_explanation() {
    let dir = TestDir::new("explain-wrong").with("limits.toml", WRONG);
    let run = dir.run(&["explain", "limits.toml", "--request", "GET /"]);
    assert_eq!((run.code, &*run.stdout), (Some(1), ""));
    assert!(run.stderr.contains("4 problems"), "{}", run.stderr);
    let run = dir.run(&[
        "explain",
        "limits.toml",
        "--request",
        "GET /",
        "--format=json",
    ]);
    assert_eq!(run.json()["ok"], false);
}

#[test]
fn wrong_arguments_exit_with_code_2() {
    let dir = TestDir::new("usage").with("limits.toml", GOOD);
    let explain = |args: &[&str]| dir.run(&[&["explain", "limits.toml"], args].concat());
    let request = ["--request", "GET /"];
    for (args, expected) in [
        (&[][..], "--request"),
        (&["--request", "get /"], "a method in capitals"),
        (&["--request", "/v1/secrets"], "a method and a path"),
        (&["--at", "tomorrow"], "2026-12-01T06:00:00Z"),
        (&["--at", "1969-12-31T23:59:59Z"], "from 1970"),
        (
            &["--ip", "localhost"],
            "invalid value 'localhost' for '--ip",
        ),
        (&["--dimension", "device"], "a name and a value"),
        (&["--dimension", "ip=10.0.0.1"], "--ip"),
        (&["--tier", "team"], "expected --user"),
        (
            &["--role", "service", "--ip", "10.0.0.1"],
            "expected --user",
        ),
        (
            &["--user", "a", "--dimension", "user=b"],
            "dimension `user` is both `a` and `b`: expected one value",
        ),
        (&["--usr", "alice"], "--user"),
        (&["--format", "xml"], "json"),
    ] {
        let args = match args {
            [] | ["--request", ..] => args.to_vec(),
            args => [&request, args].concat(),
        };
        let run = explain(&args);
        assert_eq!((run.code, &*run.stdout), (Some(2), ""), "{args:?}");
        assert!(run.stderr.contains(expected), "{args:?}: {}", run.stderr);
    }
}

/// `/v1%2Fsecrets%2F42` can be read as the endpoint, and as a path that no rule is for.
#[test]
fn rules_of_every_reading_of_a_path_are_explained() {
    let dir = TestDir::new("explain-odd").with("limits.toml", GOOD);
    let explain = |request: &str| {
        explained(
            &dir,
            &[&["--request", request], &AFTER_MAINTENANCE[..]].concat(),
        )
    };
    let report = explain("GET /v1%2Fsecrets%2F42");
    assert_eq!(report["endpoints"], json!(["GET /v1/secrets/{id}"]));
    assert_eq!(report["rejected"], Value::Null);
    let policies: Vec<&str> = counted(&report).iter().map(|(policy, _)| *policy).collect();
    assert_eq!(policies, ["ip:secrets:1h", "ip:global:1h"]);

    let report = explain("GET /v1/secrets/../42");
    assert_eq!(report["rejected"]["reason"], "invalid-path");
    assert!(counted(&report).is_empty());
    let text = dir.run(&["explain", "limits.toml", "--request", "GET /v1/%2e%2e"]);
    assert!(!text.stdout.contains("Counted by"), "{}", text.stdout);
}
