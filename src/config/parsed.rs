//! Settings of a policy file after parsing and validation.

use std::fmt;
use std::path::PathBuf;

use super::error::ConfigError;
use super::problem::ConfigProblem;
use super::report::ProblemReport;
use super::source::Source;
use super::table::{self, FileSettings};
use super::tree::Setting;
use super::{check, compile, environment};
use crate::headers::HeaderStyle;
use crate::identity::ClientIp;
use crate::pipeline::LayerOverrides;
use crate::policy::{Policy, PolicyBuilder};

/// Checked settings of a policy file; see [`config`](crate::config).
pub struct Config {
    pub(super) source: Source,
    pub(super) rules: PolicyBuilder,
    pub(super) policy: Policy,
    /// Identity sources and headers of the file.
    pub(super) overrides: LayerOverrides,
    pub(super) key_files: Vec<PathBuf>,
    /// Hash of the contents of the file, to detect changes.
    pub(super) fingerprint: u64,
}

impl Config {
    /// Reads a file: JSON if its name ends in `.json`, else TOML. The `TOLLGATE_` variables
    /// of the process override its settings.
    pub fn from_file(path: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        Source::file(path).read()
    }

    /// Reads a text in TOML, like a file.
    pub fn from_toml(text: impl Into<String>) -> Result<Self, ConfigError> {
        Source::toml(text).read()
    }

    /// Parses and checks a text. Syntax errors are reported alone, all other problems together.
    pub(super) fn of_text(source: &Source, name: &str, text: &str) -> Result<Self, ConfigError> {
        let mut report = ProblemReport::default();
        let parsed = source.syntax.parse(text);
        let mut root = match parsed {
            Ok(root) => root,
            Err(problems) => {
                report.extend(problems);
                return Err(ConfigError::new(name, text, report));
            }
        };
        let context = &source.context;
        environment::apply(&mut root, context, &mut report);
        let root = Setting::root(&root);
        check::check(&root, &mut report);
        let FileSettings {
            policy,
            overrides,
            key_files,
        } = table::read(&root, context, &mut report);
        let rules = source.adjusted(policy);
        let policy = if report.is_full() {
            None
        } else {
            compile::compile(rules.clone(), &root, &mut report)
        };
        if report.is_empty() && !has_limits(&rules) {
            report.push(no_limits());
        }
        match policy {
            Some(policy) if report.is_empty() => Ok(Self {
                source: source.clone(),
                rules,
                policy,
                overrides,
                key_files,
                fingerprint: 0,
            }),
            _ => Err(ConfigError::new(name, text, report).with_key_files(key_files)),
        }
    }

    /// Returns the source, which can be read again.
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the rules as a builder.
    pub const fn policy(&self) -> &PolicyBuilder {
        &self.rules
    }

    /// Returns which rate limit headers responses have.
    #[must_use]
    pub fn headers(&self) -> HeaderStyle {
        self.overrides.style.unwrap_or_default()
    }

    /// Returns how the client IP is determined, if the file sets it.
    #[must_use]
    pub const fn client_ip(&self) -> Option<&ClientIp> {
        self.overrides.client_ip.as_ref()
    }

    /// Returns the compiled policy, without the other settings of the file.
    #[must_use]
    pub fn into_policy(self) -> Policy {
        self.policy
    }
}

/// Returns whether the policy has a rule that can count requests.
fn has_limits(rules: &PolicyBuilder) -> bool {
    let globals = [&rules.everyone, &rules.authenticated, &rules.anonymous];
    globals.into_iter().any(Option::is_some)
        || !rules.endpoints.is_empty()
        || !rules.rules.is_empty()
}

fn no_limits() -> ConfigProblem {
    ConfigProblem::new("the file has no limits")
        .with_expected("`[global]`, `[[endpoints]]` or `[[rules]]`")
        .with_help(Some(
            "to set no limit explicitly: [global] authenticated = \"unlimited\"".to_owned(),
        ))
}

/// Shows the rules, but no keys or secrets.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("source", &self.source)
            .field("policy", &self.policy)
            .field("headers", &self.headers())
            .finish_non_exhaustive()
    }
}
