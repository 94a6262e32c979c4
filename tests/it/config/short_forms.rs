//! Short forms: `per = "instance"`, `per = "caller"`, `global.everyone`.

use tollgate::config::Source;

/// Returns the policy of a file, with these variables, as text.
fn policy(text: &str, variables: &[(&'static str, &'static str)]) -> String {
    let source = Source::toml(text).variables(variables.iter().copied());
    let config = source.read().unwrap_or_else(|error| panic!("{error}"));
    format!("{:?}", config.policy())
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
