//! Short forms: `per = "instance"`, `per = "caller"`, `global.everyone`.

use serde_json::Value;
use tollgate::config::Source;

/// Returns the overview of the policy of a file, with these variables, without the paths of the rules.
fn policy(text: &str, variables: &[(&'static str, &'static str)]) -> Value {
    let source = Source::toml(text).variables(variables.iter().copied());
    let config = source.read().unwrap_or_else(|error| panic!("{error}"));
    let policy = config.into_policy();
    let mut overview = serde_json::to_value(policy.overview()).unwrap();
    for rule in overview["rules"].as_array_mut().unwrap() {
        rule.as_object_mut().unwrap().remove("path").unwrap();
    }
    overview
}

#[test]
fn per_instance_is_an_empty_list() {
    let rule = "[[rules]]\nname = \"outbound\"\nlimit = \"60/minute\"\n";
    let list = policy(&format!("{rule}per = []"), &[]);
    assert_eq!(policy(&format!("{rule}per = \"instance\""), &[]), list);
    let variable = [("TOLLGATE_RULES__OUTBOUND__PER", "instance")];
    assert_eq!(policy(&format!("{rule}per = \"caller\""), &variable), list);
    assert_ne!(policy(rule, &[]), list);
}

#[test]
fn per_caller_is_the_default() {
    let rule = "[[rules]]\nname = \"burst\"\nlimit = \"60/minute\"\n";
    let default = policy(rule, &[]);
    assert_eq!(policy(&format!("{rule}per = \"caller\""), &[]), default);
}

/// As dimensions, no caller would have them, and no request would be counted.
#[test]
fn words_for_per_mean_the_same_inside_a_list() {
    let rule = "[[rules]]\nname = \"outbound\"\nlimit = \"60/minute\"\n";
    for word in ["instance", "caller"] {
        let plain = policy(&format!("{rule}per = \"{word}\""), &[]);
        assert_eq!(policy(&format!("{rule}per = [\"{word}\"]"), &[]), plain);
    }
}

#[test]
fn variable_with_one_dimension_is_a_list() {
    let rule = "[[rules]]\nname = \"burst\"\nlimit = \"60/minute\"\n";
    let list = policy(&format!("{rule}per = [\"tenant\"]"), &[]);
    let variable = [("TOLLGATE_RULES__BURST__PER", "tenant")];
    assert_eq!(policy(rule, &variable), list);
}

#[test]
fn everyone_is_both_global_rules() {
    let both = "[global]\nauthenticated = \"100/hour\"\nanonymous = \"100/hour\"";
    let everyone = "[global]\neveryone = \"100/hour\"";
    assert_eq!(policy(everyone, &[]), policy(both, &[]));
}

#[test]
fn more_specific_global_rule_takes_precedence_over_everyone() {
    let both = "[global]\nauthenticated = \"100/hour\"\nanonymous = \"10/hour\"";
    let everyone = "[global]\neveryone = \"100/hour\"\nanonymous = \"10/hour\"";
    assert_eq!(policy(everyone, &[]), policy(both, &[]));
}
