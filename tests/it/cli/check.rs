//! `tollgate check`.

use serde_json::json;

use super::{GOOD, Place, WRONG, run};

#[test]
fn a_good_file_is_told_what_it_means() {
    let place = Place::new("good").with("limits.toml", GOOD);
    let run = place.run(&["check", "limits.toml"]);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""));
    for line in [
        "limits.toml is fine: 5 rules for 2 endpoints",
        "  POST /login             login    caller  10/1h and 3/1m  10/1h and 3/1m  counts failure",
        "  everything              tenant   tenant  100000/1d       500000/1d       dry-run",
        "    GET /v1/secrets/{id}",
        "  callers   tenant=ourselves",
        "  nobody is counted before 2026-12-01T06:00:00.000000Z",
    ] {
        assert!(
            run.stdout.lines().any(|told| told == line),
            "{line}\n{}",
            run.stdout
        );
    }
}

#[test]
fn a_good_file_is_told_to_programs() {
    let place = Place::new("good-json").with("limits.toml", GOOD);
    let run = place.run(&["check", "limits.toml", "--format", "json"]);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""));
    let told = run.json();
    assert_eq!(told["ok"], true);
    assert_eq!(told["file"], "limits.toml");
    assert_eq!(told["warnings"], json!([]));
    assert_eq!(
        told["tiers"][1],
        json!({ "name": "team", "multiplier": 5.0, "default": false })
    );
    let rules = told["rules"].as_array().unwrap();
    let login = rules.iter().find(|rule| rule["name"] == "login").unwrap();
    assert_eq!(
        *login,
        json!({
            "kind": "endpoint",
            "name": "login",
            "path": "endpoints[1]",
            "callers": "all",
            "per": "caller",
            "limits": { "free": ["10/1h", "3/1m"], "team": ["10/1h", "3/1m"] },
            "cost": 1,
            "count": "failure",
            "mode": "enforce",
            "on_store_failure": "deny",
        })
    );
    let first = json!({ "route": "GET /v1/secrets/{id}", "category": "secrets",
        "rules": ["secrets"], "global": true });
    assert_eq!(told["endpoints"][0], first);
    assert_eq!(told["exempt"]["networks"], json!(["10.0.0.0/8"]));
    assert_eq!(
        told["maintenance"]["disabled_until"],
        "2026-12-01T06:00:00.000000Z"
    );
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let place = Place::new("wrong").with("limits.toml", WRONG);
    let run = place.run(&["check", "limits.toml"]);
    assert_eq!((run.code, &*run.stdout), (Some(1), ""));
    for expected in [
        "limits.toml:3:",
        "fortnight",
        "did you mean `anonymous`?",
        "endpoints[0].route",
        "endpoints[0].limit",
        "4 problems in limits.toml",
    ] {
        assert!(run.stderr.contains(expected), "{expected}\n{}", run.stderr);
    }

    let run = place.run(&["check", "limits.toml", "--format", "json"]);
    assert_eq!((run.code, &*run.stderr), (Some(1), ""));
    let told = run.json();
    assert_eq!((&told["ok"], &told["more"]), (&json!(false), &json!(0)));
    let problems = told["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 4);
    assert_eq!(problems[1]["path"], "global.anonymus");
    assert_eq!(
        (&problems[1]["line"], &problems[1]["column"]),
        (&json!(4), &json!(1))
    );
}

#[test]
fn a_file_that_cannot_be_read_is_a_problem_too() {
    let place = Place::new("missing").with("limits.toml", GOOD);
    let run = place.run(&["check", "limit.toml"]);
    assert_eq!((run.code, &*run.stdout), (Some(1), ""));
    for expected in ["limit.toml", "no such file", "did you mean `limits.toml`?"] {
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
    let run = place.run(&["check", ".", "--format", "json"]);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.json()["ok"], false);
}

#[test]
fn json_files_are_files_too() {
    let place = Place::new("json").with("limits.json", r#"{"global":{"anonymous":"7/minute"}}"#);
    let run = place.run(&["check", "limits.json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("7/1m"), "{}", run.stdout);
}

#[test]
fn what_is_hardly_wanted_is_told_and_no_failure() {
    let idle = format!("{GOOD}\n[categories.idle]\nlimit = '1/hour'\n");
    let place = Place::new("idle").with("limits.toml", &idle);
    let run = place.run(&["check", "limits.toml"]);
    assert_eq!(run.code, Some(0));
    let expected = "warning: categories.idle: no endpoint is in this category\n";
    assert_eq!(run.stderr, expected);
    let told = place.run(&["check", "limits.toml", "--format=json"]).json();
    assert_eq!(told["warnings"][0]["path"], "categories.idle");
}

/// CI has no secrets, and no need of them.
#[test]
fn secrets_are_not_needed() {
    let text =
        format!("{GOOD}\n[identity.jwt]\nalgorithms = ['HS256']\nsecret_env = 'NO_SUCH_SECRET'\n");
    let place = Place::new("secrets").with("limits.toml", &text);
    let run = place.run(&["check", "limits.toml"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}

#[test]
fn the_environment_counts() {
    let place = Place::new("environment").with("limits.toml", GOOD);
    let mut command = place.command(&["check", "limits.toml"]);
    let told = run(command.env("TOLLGATE_GLOBAL__ANONYMOUS", "7/minute"));
    assert!(told.stdout.contains("7/1m"), "{}", told.stdout);
    let mut command = place.command(&["check", "limits.toml"]);
    let told = run(command.env("TOLLGATE_GLOBAL__ANONYMUS", "7/minute"));
    assert_eq!(told.code, Some(1));
    assert!(
        told.stderr.contains("TOLLGATE_GLOBAL__ANONYMUS"),
        "{}",
        told.stderr
    );
}

/// The gateway's own file says nothing that is hardly wanted.
#[test]
fn the_gateways_file_is_fine() {
    let gateway = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/gateway.toml");
    let run = Place::new("gateway").run(&["check", gateway]);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""));
    for category in [
        "public", "auth", "secrets", "projects", "mcp", "ai", "audit",
    ] {
        let heading = format!("Category {category}");
        assert!(run.stdout.lines().any(|line| line == heading), "{heading}");
    }
}
