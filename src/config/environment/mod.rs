//! Environment variables that override parts of a file:
//! `TOLLGATE_GLOBAL__AUTHENTICATED=2000/hour`.

mod target;
mod value;

use std::sync::Arc;

use self::target::{PathStep, find};
use super::context::ReadContext;
use super::problem::ConfigProblem;
use super::redact::is_variable_name;
use super::report::ProblemReport;
use super::suggest::plain;
use super::table::{FILE, ValueKind};
use super::tree::{
    ConfigKey, ConfigNode, ConfigPath, ConfigTable, ConfigValue, SourceSpan, Variable,
};

const PREFIX: &str = "TOLLGATE_";

/// Variable with the path of the policy file, which programs read. It overrides no setting.
const RESERVED: &str = "CONFIG";

/// Sets the values of variables in the tree, as if they were in the file. Reports variables that
/// name no setting, and values that cannot be parsed.
pub(super) fn apply(root: &mut ConfigNode, context: &ReadContext, report: &mut ProblemReport) {
    let mut overrides: Vec<(Vec<PathStep>, ConfigNode)> = Vec::new();
    for variable in override_variables(context, report) {
        let variable = Arc::new(variable);
        let name = &variable.name[PREFIX.len()..];
        let (steps, kind) = match find(name, root) {
            Ok(found) => found,
            Err(problem) => {
                report.push(unknown(&variable, *problem));
                continue;
            }
        };
        let path = path(&steps);
        // Two variables overlap also if one sets a part of the value that the other sets.
        let overlaps = |other: &[PathStep]| other.starts_with(&steps) || steps.starts_with(other);
        if let Some((_, first)) = overrides.iter().find(|(other, _)| overlaps(other)) {
            report.push(twice(&variable, &path, first));
            continue;
        }
        match value::read(&variable, kind) {
            Ok(mut node) => {
                if is_misplaced_secret(&steps, &variable) {
                    node.span = SourceSpan::of_variable(&variable.name);
                }
                overrides.push((steps, node));
            }
            Err(problem) => report.push(problem.with_path(&path)),
        }
    }
    // Set only after all look-ups, because names in variables refer to the file without overrides.
    for (steps, node) in overrides {
        put(root, &steps, node);
    }
}

/// Returns the variables that override settings, sorted by name.
fn override_variables(context: &ReadContext, report: &mut ProblemReport) -> Vec<Variable> {
    let mut found = Vec::new();
    for (name, value) in context.variables() {
        let Some(name) = name.to_str() else {
            continue;
        };
        let has_prefix = name
            .get(..PREFIX.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(PREFIX));
        if !has_prefix || is_reserved(&name[PREFIX.len()..]) {
            continue;
        }
        let name = name.to_owned();
        if let Ok(value) = value.into_string() {
            found.push(Variable { name, value });
        } else {
            let problem = ConfigProblem::new("the value is not UTF-8")
                .with_expected("text in UTF-8")
                .with_span(SourceSpan::of_variable(&name));
            report.push(problem);
        }
    }
    found
}

/// Returns whether a variable is no override: the path of the file, or a variable that Kubernetes
/// sets in every container for a service with the name `tollgate`.
fn is_reserved(rest: &str) -> bool {
    if rest.eq_ignore_ascii_case(RESERVED) {
        return true;
    }
    if rest.contains("__") {
        return false;
    }
    let is_port = |rest: &str| {
        let mut parts = rest.split('_');
        let number = parts.next().is_some_and(|part| part.parse::<u16>().is_ok());
        number && matches!(parts.next(), Some("TCP" | "UDP" | "SCTP"))
    };
    let ends = |rest: &str| match rest.split_once("PORT") {
        Some((before, "")) => before.is_empty() || before.ends_with('_'),
        Some((before, after)) if before.is_empty() || before.ends_with('_') => {
            before.ends_with("SERVICE_") || after.strip_prefix('_').is_some_and(is_port)
        }
        _ => false,
    };
    rest.ends_with("SERVICE_HOST") || ends(rest)
}

/// Returns whether the value is probably a secret, where the name of a variable is expected.
fn is_misplaced_secret(steps: &[PathStep], variable: &Variable) -> bool {
    let names_secret = matches!(steps.last(), Some(PathStep::Key(key)) if key == "secret_env");
    names_secret && !is_variable_name(variable.value.trim())
}

/// Returns the path of the setting that a variable sets.
fn path(steps: &[PathStep]) -> ConfigPath {
    steps
        .iter()
        .fold(ConfigPath::default(), |path, step| match step {
            PathStep::Key(name) => path.key(name),
            PathStep::Item(index) => path.item(*index),
        })
}

/// Sets the value at a path, and creates the tables on the way that the file does not have.
fn put(node: &mut ConfigNode, steps: &[PathStep], value: ConfigNode) {
    let Some((step, rest)) = steps.split_first() else {
        *node = value;
        return;
    };
    match (step, &mut node.value) {
        (PathStep::Item(index), ConfigValue::List(items)) => {
            if let Some(item) = items.get_mut(*index) {
                put(item, rest, value);
            }
        }
        (PathStep::Key(name), ConfigValue::Table(table)) => {
            let known = table.entries.iter().position(|(key, _)| key.name == *name);
            let at = known.unwrap_or_else(|| {
                let span = value.span.clone();
                let key = ConfigKey {
                    name: name.clone(),
                    span: span.clone(),
                };
                let empty = ConfigValue::Table(ConfigTable::default());
                table.entries.push((key, ConfigNode { span, value: empty }));
                table.entries.len() - 1
            });
            put(&mut table.entries[at].1, rest, value);
        }
        // The file has a value of another kind there, which the check reports.
        _ => {}
    }
}

/// Returns the problem of a variable that names no setting. Its value is not shown, because it may
/// be a secret.
fn unknown(variable: &Variable, problem: ConfigProblem) -> ConfigProblem {
    let problem = problem.with_span(SourceSpan::of_variable(&variable.name));
    if problem.help.is_some() {
        return problem;
    }
    let meant = known_as(&variable.name[PREFIX.len()..]);
    problem.with_help(meant.map(|meant| {
        format!("did you mean `{PREFIX}{meant}`? Between tables and keys are two underscores")
    }))
}

fn twice(variable: &Arc<Variable>, path: &ConfigPath, first: &ConfigNode) -> ConfigProblem {
    ConfigProblem::new("two variables set the same key")
        .with_path(path)
        .with_expected("one of them")
        .with_span(SourceSpan::in_variable(variable))
        .with_other(first.span.clone(), "the other one")
}

/// Returns the variable of a key that differs from this name only in underscores.
fn known_as(rest: &str) -> Option<String> {
    let squeezed = |text: &str| plain(text).replace('_', "");
    let written = squeezed(rest);
    let mut names = FILE.keys().flat_map(|owner| {
        let keys = match owner.kind {
            ValueKind::Table(table) => table.names(),
            _ => Vec::new(),
        };
        let name = |key| format!("{}__{key}", owner.key).to_ascii_uppercase();
        keys.into_iter().map(name).collect::<Vec<_>>()
    });
    names.find(|name| squeezed(name) == written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_the_file_and_kubernetes_service_variables_are_reserved() {
        for name in [
            "CONFIG",
            "PORT",
            "SERVICE_HOST",
            "SERVICE_PORT",
            "SERVICE_PORT_HTTP",
            "PORT_80_TCP",
            "PORT_80_TCP_ADDR",
            "GATEWAY_SERVICE_HOST",
            "GATEWAY_PORT_8080_TCP_PROTO",
        ] {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["GLOBAL__PORT", "LOG", "SUPPORT", "PORT_X", "CONFIG__X", ""] {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
