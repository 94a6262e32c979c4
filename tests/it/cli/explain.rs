//! `tollgate explain`.

use serde_json::{Value, json};

use super::{GOOD, Place, WRONG};

fn explained(place: &Place, args: &[&str]) -> Value {
    let command = [&["explain", "limits.toml", "--format", "json"], args].concat();
    let run = place.run(&command);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""), "{args:?}");
    run.json()
}

/// Policies and counters.
fn counted(told: &Value) -> Vec<(&str, &str)> {
    let counted = told["counted_by"].as_array().unwrap().iter();
    counted
        .map(|by| {
            (
                by["policy"].as_str().unwrap(),
                by["counter"].as_str().unwrap(),
            )
        })
        .collect()
}

/// After maintenance.
const LATER: [&str; 2] = ["--at", "2026-12-01T06:00:00Z"];

#[test]
fn everything_about_a_caller_counts() {
    let place = Place::new("explain").with("limits.toml", GOOD);
    let request = ["--request", "GET /v1/secrets/42"];
    let ask = |args: &[&str]| explained(&place, &[&request, &LATER, args].concat());

    let told = ask(&["--user", "alice", "--tenant", "acme", "--tier", "team"]);
    assert_eq!(told["request"], "GET /v1/secrets/42");
    assert_eq!(told["caller"], "user=alice");
    assert_eq!(told["endpoint"], "GET /v1/secrets/{id}");
    assert_eq!(
        told["tier"],
        json!({ "name": "team", "multiplier": 5.0, "from": "identity" })
    );
    assert_eq!(told["exempt"], Value::Null);
    assert_eq!(
        counted(&told),
        [
            ("user:secrets:1h", "user=alice"),
            ("user:global:1h", "user=alice"),
            ("tenant:tenant:1d", "tenant=acme"),
        ]
    );
    assert_eq!(
        told["counted_by"][0],
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
            "on_store_failure": "local",
            "message": null,
            "suggestion": "Ask for less.",
        })
    );
    assert_eq!(told["counted_by"][2]["mode"], "dry-run");

    let told = ask(&["--ip", "203.0.113.9"]);
    assert_eq!(counted(&told)[0], ("ip:secrets:1h", "ip=203.0.113.9"));
    let told = ask(&["--dimension", "api-key=k1"]);
    assert_eq!(counted(&told)[0], ("api-key:secrets:1h", "api-key=k1"));
    // Whoever has a user name is known by it, in whatever order it is said.
    let told = ask(&["--dimension", "device=d1", "--dimension", "user=bob"]);
    assert_eq!(told["caller"], "user=bob");
    let told = ask(&["--user", "alice", "--role", "editor", "--role", "service"]);
    assert_eq!(told["exempt"]["by"], "role");
    assert_eq!(told["counted_by"], json!([]));
    let told = ask(&["--ip", "10.1.2.3"]);
    assert_eq!(
        told["exempt"]["because"],
        "the network 10.0.0.0/8 is exempt"
    );
    let told = ask(&["--user", "alice", "--tier", "gold"]);
    assert_eq!(
        told["tier"],
        json!({ "name": "free", "multiplier": 1.0, "from": "unknown" })
    );
}

#[test]
fn rules_that_do_not_count_say_why() {
    let place = Place::new("why-not").with("limits.toml", GOOD);
    let request = ["--request", "POST /login", "--user", "alice"];
    let told = explained(&place, &[&request[..], &LATER].concat());
    assert_eq!(
        told["not_counted_by"],
        json!([
            { "kind": "global", "rule": "global", "why": "only-anonymous",
              "because": "it is for the anonymous" },
            { "kind": "always-on", "rule": "tenant", "why": "lacks",
              "because": "the caller has no `tenant`" },
        ])
    );
}

/// The last moment before it, and the first after.
#[test]
fn maintenance_ends_when_it_says() {
    let place = Place::new("maintenance").with("limits.toml", GOOD);
    for (at, exempt) in [
        ("2026-12-01T05:59:59.999999Z", json!("maintenance")),
        ("2026-12-01T07:00:00+01:00", Value::Null),
    ] {
        let told = explained(&place, &["--request", "GET /", "--at", at]);
        assert_eq!(told["exempt"]["by"], exempt, "{at}");
    }
}

/// IPv6 is counted by network: by the one that the file says.
#[test]
fn networks_are_those_of_the_file() {
    let request = ["--request", "GET /", "--ip", "2001:db8:1:2:3:4:5:6"];
    let args = [&request[..], &LATER].concat();
    let place = Place::new("prefix-64").with("limits.toml", GOOD);
    assert_eq!(explained(&place, &args)["caller"], "ip=2001:db8:1:2::");
    let text = format!("{GOOD}\n[identity.ip]\nipv6_prefix = 48\n");
    let place = Place::new("prefix-48").with("limits.toml", &text);
    assert_eq!(explained(&place, &args)["caller"], "ip=2001:db8:1::");
}

/// It said that such a request is exempt, and the layer counted it.
#[test]
fn a_proxy_lends_nobody_its_exemption() {
    let text = format!("{GOOD}\n[identity.ip]\ntrusted_proxies = ['10.0.0.0/24']\n");
    let place = Place::new("proxy").with("limits.toml", &text);
    for (ip, exempt) in [("10.0.0.7", Value::Null), ("10.0.1.7", json!("network"))] {
        let args = [&["--request", "GET /", "--ip", ip], &LATER[..]].concat();
        let told = explained(&place, &args);
        assert_eq!(told["exempt"]["by"], exempt, "{ip}");
        assert_eq!(told["caller"], format!("ip={ip}"));
    }
}

#[test]
fn a_wrong_file_explains_nothing() {
    let place = Place::new("explain-wrong").with("limits.toml", WRONG);
    let run = place.run(&["explain", "limits.toml", "--request", "GET /"]);
    assert_eq!((run.code, &*run.stdout), (Some(1), ""));
    assert!(run.stderr.contains("4 problems"), "{}", run.stderr);
    let run = place.run(&[
        "explain",
        "limits.toml",
        "--request",
        "GET /",
        "--format=json",
    ]);
    assert_eq!(run.json()["ok"], false);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new("usage").with("limits.toml", GOOD);
    let explain = |args: &[&str]| place.run(&[&["explain", "limits.toml"], args].concat());
    let request = ["--request", "GET /"];
    for (args, expected) in [
        (&[][..], "--request"),
        (&["--request", "get /"], "a method in capitals"),
        (&["--request", "/v1/secrets"], "a method and a path"),
        (&["--at", "tomorrow"], "2026-12-01T06:00:00Z"),
        (&["--at", "1969-12-31T23:59:59Z"], "before 1970"),
        (
            &["--ip", "localhost"],
            "invalid value 'localhost' for '--ip",
        ),
        (&["--dimension", "device"], "a name and a value"),
        (&["--dimension", "ip=10.0.0.1"], "--ip"),
        (&["--tier", "team"], "say who"),
        (&["--role", "service", "--ip", "10.0.0.1"], "say who"),
        (
            &["--user", "a", "--dimension", "user=b"],
            "`user` is said twice",
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
fn odd_paths_are_explained() {
    let place = Place::new("explain-odd").with("limits.toml", GOOD);
    let ask = |request: &str| explained(&place, &[&["--request", request], &LATER[..]].concat());
    let told = ask("GET /v1%2Fsecrets%2F42");
    assert_eq!(told["endpoints"], json!(["GET /v1/secrets/{id}"]));
    assert_eq!(told["rejected"], Value::Null);
    let policies: Vec<&str> = counted(&told).iter().map(|(policy, _)| *policy).collect();
    assert_eq!(policies, ["ip:secrets:1h", "ip:global:1h"]);

    let told = ask("GET /v1/secrets/../42");
    assert_eq!(told["rejected"]["reason"], "invalid-path");
    assert!(counted(&told).is_empty());
    let text = place.run(&["explain", "limits.toml", "--request", "GET /v1/%2e%2e"]);
    assert!(!text.stdout.contains("Counted by"), "{}", text.stdout);
}
