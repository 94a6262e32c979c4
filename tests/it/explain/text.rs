//! Text form of an explanation.

use tollgate::policy::{ExplainRequest, Policy, Rule};
use tollgate::{Identity, Timestamp};

const COUNTED: &str = "\
PUT /v1/secrets/42 by user=alice at 1970-01-01T00:16:40.000Z
  endpoint  PUT /v1/secrets/{id}
  tier      team (times 5), from the identity

Counted by, all or none:

  1. user:secrets-update:1h  500/1h
     rule        secrets-update (endpoint)
     counter     user=alice
     limit       100/1h times 5
     counts      every response, 1 each
     store down  counted in the memory of each process

  2. user:global:1h  5000/1h
     rule        global (global)
     counter     user=alice
     limit       1000/1h times 5
     counts      every response, 1 each
     store down  counted in the memory of each process

  3. all:instance:1s  1000/1s
     rule        instance (always-on)
     counter     all callers
     limit       1000/1s, from the rule
     counts      every response, 1 each
     store down  counted in the memory of each process

Not counted by:

   - secrets (category): the endpoint has a quota of its own instead
   - global (global): it applies to unauthenticated callers
   - tenant (always-on): the caller has no `tenant`
";

const EXEMPT: &str = "\
GET /health by ip=203.0.113.9
  endpoint  no endpoint of the policy
  tier      free (times 1), the default tier

Exempt: the route `GET /health` is exempt. Nothing is counted.

Not counted by:

   - global (global): the request is exempt
   - global (global): the request is exempt
   - tenant (always-on): the request is exempt
   - instance (always-on): the request is exempt
";

#[test]
fn text_lists_counting_rules_and_skipped_rules() {
    let policy = super::policy().build().unwrap();
    let explain_request = ExplainRequest::new("PUT /v1/secrets/42")
        .unwrap()
        .identity(Identity::user("alice").tier("team"))
        .at(Timestamp::from_secs(1_000));
    assert_eq!(policy.explain(&explain_request).to_string(), COUNTED);
    let explain_request = ExplainRequest::new("GET /health")
        .unwrap()
        .ip([203, 0, 113, 9]);
    assert_eq!(policy.explain(&explain_request).to_string(), EXEMPT);
}

#[test]
fn colours_do_not_change_the_text() {
    let policy = super::policy().build().unwrap();
    for request in ["PUT /v1/secrets/42", "GET /health"] {
        let explanation = policy.explain(&ExplainRequest::new(request).unwrap());
        let colored = explanation.colored().to_string();
        let mut parts = colored.split("\x1b[");
        let mut plain = parts.next().unwrap().to_owned();
        for part in parts {
            let (code, rest) = part.split_once('m').unwrap();
            assert!(
                code.bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b';')
            );
            plain += rest;
        }
        assert_eq!(plain, explanation.to_string());
        assert_ne!(plain, colored);
    }
}

#[test]
fn text_and_json_show_whether_a_rule_is_quiet() {
    let policy = Policy::builder()
        .everyone("100/hour")
        .endpoint("GET /a", Rule::new("2/second").name("burst").quiet(true))
        .build()
        .unwrap();
    let explain_request = ExplainRequest::new("GET /a").unwrap();
    let explanation = policy.explain(&explain_request.ip([203, 0, 113, 9]));
    let text = explanation.to_string();
    assert_eq!(
        text.matches("quiet       reported only").count(),
        1,
        "{text}"
    );
    let json = serde_json::to_value(&explanation).unwrap();
    assert_eq!(json["counted_by"][0]["quiet"], true);
    assert_eq!(json["counted_by"][1]["quiet"], false);
    let overview = serde_json::to_value(policy.overview()).unwrap();
    let rules = overview["rules"].as_array().unwrap();
    let quiet = rules.iter().filter(|rule| rule["quiet"] == true);
    let names: Vec<&serde_json::Value> = quiet.map(|rule| &rule["name"]).collect();
    assert_eq!(names, ["burst"]);
}
