//! `tollgate check`.

use serde_json::json;

use crate::support::{GOOD, TestDir, WRONG, run};

#[test]
fn summary_lists_limits_per_tier_and_exemptions() {
    let dir = TestDir::new("good").with("limits.toml", GOOD);
    let run = dir.run(&["check", "limits.toml"]);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""));
    for line in [
        "limits.toml is fine: 5 rules for 2 endpoints",
        "  POST /login             login    caller  10/1h and 5/1m  10/1h and 5/1m  counts failure, quiet",
        "  everything              tenant   tenant  100000/1d       500000/1d       dry-run",
        "    GET /v1/secrets/{id}",
        "  callers   tenant=ourselves",
        "  no request is counted before 2026-12-01T06:00:00.000Z",
    ] {
        assert!(
            run.stdout.lines().any(|printed| printed == line),
            "{line}\n{}",
            run.stdout
        );
    }
}

#[test]
fn json_summary_lists_rules_endpoints_and_exemptions() {
    let dir = TestDir::new("good-json").with("limits.toml", GOOD);
    let run = dir.run(&["check", "limits.toml", "--format", "json"]);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""));
    let report = run.json();
    assert_eq!(report["ok"], true);
    assert_eq!(report["file"], "limits.toml");
    assert_eq!(report["warnings"], json!([]));
    assert_eq!(
        report["tiers"][1],
        json!({ "name": "team", "multiplier": 5.0, "default": false })
    );
    let rules = report["rules"].as_array().unwrap();
    let login = rules.iter().find(|rule| rule["name"] == "login").unwrap();
    assert_eq!(
        *login,
        json!({
            "kind": "endpoint",
            "name": "login",
            "path": "endpoints[1]",
            "callers": "all",
            "per": "caller",
            "limits": { "free": ["10/1h", "5/1m"], "team": ["10/1h", "5/1m"] },
            "cost": 1,
            "count": "failure",
            "mode": "enforce",
            "quiet": true,
            "on_store_failure": "deny",
        })
    );
    let first = json!({ "route": "GET /v1/secrets/{id}", "category": "secrets",
        "rules": ["secrets"], "global": true });
    assert_eq!(report["endpoints"][0], first);
    assert_eq!(report["exempt"]["networks"], json!(["10.0.0.0/8"]));
    assert_eq!(
        report["maintenance"]["disabled_until"],
        "2026-12-01T06:00:00.000Z"
    );
}

#[test]
fn all_problems_are_reported_together() {
    let dir = TestDir::new("wrong").with("limits.toml", WRONG);
    let run = dir.run(&["check", "limits.toml"]);
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

    let run = dir.run(&["check", "limits.toml", "--format", "json"]);
    assert_eq!((run.code, &*run.stderr), (Some(1), ""));
    let report = run.json();
    assert_eq!((&report["ok"], &report["more"]), (&json!(false), &json!(0)));
    let problems = report["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 4);
    assert_eq!(problems[1]["path"], "global.anonymus");
    assert_eq!(
        (&problems[1]["line"], &problems[1]["column"]),
        (&json!(4), &json!(1))
    );
}

#[test]
fn unreadable_file_is_reported_as_a_problem() {
    let dir = TestDir::new("missing").with("limits.toml", GOOD);
    let run = dir.run(&["check", "limit.toml"]);
    assert_eq!((run.code, &*run.stdout), (Some(1), ""));
    for expected in [
        "limit.toml",
        "file not found",
        "did you mean `limits.toml`?",
    ] {
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
    let run = dir.run(&["check", ".", "--format", "json"]);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.json()["ok"], false);
}

#[test]
fn json_policy_files_are_accepted() {
    let dir = TestDir::new("json").with("limits.json", r#"{"global":{"anonymous":"7/minute"}}"#);
    let run = dir.run(&["check", "limits.json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("7/1m"), "{}", run.stdout);
}

#[test]
fn warnings_do_not_change_the_exit_code() {
    let idle = format!("{GOOD}\n[categories.idle]\nlimit = '10/hour'\n");
    let dir = TestDir::new("idle").with("limits.toml", &idle);
    let run = dir.run(&["check", "limits.toml"]);
    assert_eq!(run.code, Some(0));
    let expected = "warning: categories.idle: no endpoint is in this category\n";
    assert_eq!(run.stderr, expected);
    let report = dir.run(&["check", "limits.toml", "--format=json"]).json();
    assert_eq!(report["warnings"][0]["path"], "categories.idle");
}

#[test]
fn sliding_window_with_a_small_limit_suggests_a_log() {
    let small = GOOD.replace("'5/minute'", "'4/minute'");
    let dir = TestDir::new("small").with("limits.toml", &small);
    let run = dir.run(&["check", "limits.toml"]);
    assert_eq!(run.code, Some(0));
    let expected = "warning: endpoints[1]: `4/1m` counts in a sliding window, which admits up to 8 \
                    requests around the end of a window; `4/1m, sliding-log` is exact\n";
    assert_eq!(run.stderr, expected);
    let exact = GOOD.replace("'5/minute'", "'4/minute, sliding-log'");
    let dir = TestDir::new("exact").with("limits.toml", &exact);
    assert_eq!(dir.run(&["check", "limits.toml"]).stderr, "");
}

#[test]
fn secrets_named_by_the_file_are_not_required() {
    let text =
        format!("{GOOD}\n[identity.jwt]\nalgorithms = ['HS256']\nsecret_env = 'NO_SUCH_SECRET'\n");
    let dir = TestDir::new("secrets").with("limits.toml", &text);
    let run = dir.run(&["check", "limits.toml"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}

/// The program is built with the feature `jwt`: without it, these values are not checked.
#[test]
fn wrong_token_settings_are_reported() {
    let text = format!("{GOOD}\n[identity.jwt]\nalgorithms = ['HS256']\nleeway = '1 hour'\n");
    let dir = TestDir::new("token-settings").with("limits.toml", &text);
    let run = dir.run(&["check", "limits.toml"]);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert!(run.stderr.contains("identity.jwt.leeway"), "{}", run.stderr);
}

#[test]
fn environment_variables_override_the_file() {
    let dir = TestDir::new("environment").with("limits.toml", GOOD);
    let mut command = dir.command(&["check", "limits.toml"]);
    let output = run(command.env("TOLLGATE_GLOBAL__ANONYMOUS", "7/minute"));
    assert!(output.stdout.contains("7/1m"), "{}", output.stdout);
    let mut command = dir.command(&["check", "limits.toml"]);
    let output = run(command.env("TOLLGATE_GLOBAL__ANONYMUS", "7/minute"));
    assert_eq!(output.code, Some(1));
    assert!(
        output.stderr.contains("TOLLGATE_GLOBAL__ANONYMUS"),
        "{}",
        output.stderr
    );
}

#[test]
fn policy_file_of_the_gateway_example_has_no_problems_and_no_warnings() {
    let gateway = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/gateway/gateway.toml"
    );
    let run = TestDir::new("gateway").run(&["check", gateway]);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""));
    for category in [
        "public", "auth", "secrets", "projects", "mcp", "ai", "audit",
    ] {
        let heading = format!("Category {category}");
        assert!(run.stdout.lines().any(|line| line == heading), "{heading}");
    }
}
