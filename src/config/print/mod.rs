//! A policy, written as a file: [`PolicyBuilder::to_toml`], [`Config::to_toml`].

mod identity;
mod page;
mod rule;

use std::collections::HashMap;

use self::identity::Identity;
use self::page::{Page, Section, heading, list, text};
use self::rule::{quota, quotas, settings};
use super::tree::Spot;
use super::{Config, has_limits};
use crate::clock::Timestamp;
use crate::error::{ValidationError, ValidationErrors};
use crate::headers::{HeaderStyle, ResetStyle};
use crate::policy::{OnStoreFailure, PolicyBuilder, Preflight, Rule, Tiers};
use crate::response::Template;

impl PolicyBuilder {
    /// The policy as a file in TOML, which [`Config`] reads: to move what was
    /// said in code into a file, or to show what is in force.
    ///
    /// ```
    /// use tollgate::policy::{Count, Policy, Rule, Tiers};
    ///
    /// let policy = Policy::builder()
    ///     .tiers(Tiers::new("free").tier("team", 5))
    ///     .authenticated("1000/hour")
    ///     .endpoint("POST /login", Rule::new("10/hour").name("login").per(["ip"]).count(Count::failure()))
    ///     .exempt_when(|head| head.path().starts_with("/internal/"));
    /// assert_eq!(policy.to_toml()?, r#"[tiers]
    /// default = "free"
    /// free = 1
    /// team = 5
    ///
    /// [global]
    /// authenticated = "1000/hour"
    ///
    /// [[endpoints]]
    /// route = "POST /login"
    /// name = "login"
    /// limit = "10/hour"
    /// per = ["ip"]
    /// count = "failure"
    ///
    /// [exempt]
    /// ## Only code can say: requests of which a closure says so
    /// "#);
    /// # Ok::<(), tollgate::ValidationErrors>(())
    /// ```
    ///
    /// What goes without saying is left out, and what only code can say is a comment. A policy
    /// that is wrong is not written, nor one with a tier that files have no name for.
    pub fn to_toml(&self) -> Result<String, ValidationErrors> {
        print(self, HeaderStyle::default(), None)
    }
}

impl Config {
    /// All that is in force, as one file in TOML: what the file says, with the variables of the
    /// environment and what code has added, and without what goes without saying.
    ///
    /// ```
    /// use tollgate::config::Source;
    ///
    /// let config = Source::toml("[global]\nauthenticated = '1000/h'\nanonymous = '100/h'")
    ///     .variables([("TOLLGATE_GLOBAL__AUTHENTICATED", "2000/hour")])
    ///     .read()?;
    /// assert_eq!(config.to_toml()?, "\
    /// [global]
    /// authenticated = \"2000/hour\"
    /// anonymous = \"100/hour\"
    /// ");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Secrets are not in it, for they are not in the file. Paths of key files are as they were:
    /// they start from where the file is. See also [`PolicyBuilder::to_toml`].
    pub fn to_toml(&self) -> Result<String, ValidationErrors> {
        let identity = self.identity.as_ref().map(|said| Identity {
            said: Spot::root(said),
            failed_auth_quota: self.around.failed_auth_quota,
            with_keys: self.source.surroundings().with_keys,
        });
        print(&self.rules, self.headers(), identity.as_ref())
    }
}

fn print(
    policy: &PolicyBuilder,
    headers: HeaderStyle,
    identity: Option<&Identity<'_>>,
) -> Result<String, ValidationErrors> {
    check(policy)?;
    let mut page = Page::default();
    page.add("[defaults]", &defaults(policy, headers));
    tiers(&mut page, &policy.tiers);
    global(&mut page, policy);
    let failure = policy.on_store_failure;
    for (name, rule) in &policy.categories {
        let mut section = Section::default();
        settings(&mut section, rule, failure);
        if rule.stacked {
            section.set("stack", "true");
        }
        page.add(&heading(&["categories", name]), &section);
    }
    for (route, rule) in &policy.endpoints {
        page.add("[[endpoints]]", &endpoint(route, rule, failure));
    }
    for (name, rule) in &policy.rules {
        let mut section = Section::default();
        section.set("name", &text(name));
        settings(&mut section, rule, failure);
        page.add("[[rules]]", &section);
    }
    exempt(&mut page, policy);
    if let Some(until) = policy.maintenance_until {
        let mut section = Section::default();
        section.set("disabled_until", &instant(until));
        page.add("[maintenance]", &section);
    }
    if let Some(identity) = identity {
        identity.print(&mut page);
    }
    Ok(page.into_text())
}

/// Whether it can be built, and whether a file can say it.
fn check(policy: &PolicyBuilder) -> Result<(), ValidationErrors> {
    let mut problems = ValidationErrors::default();
    if let Err(wrong) = policy.clone().build() {
        for problem in wrong.iter() {
            problems.push(problem.clone());
        }
    }
    let global = policy.authenticated.iter().chain(&policy.anonymous);
    let named = policy.categories.iter().chain(&policy.endpoints);
    let named = named.chain(&policy.rules).map(|(_, rule)| rule);
    for message in global.chain(named).filter_map(|rule| rule.message.as_ref()) {
        problems.note(Template::parse(message));
    }
    for (index, (name, multiplier)) in policy.tiers.tiers.iter().enumerate() {
        let is_plain_default = index == 0 && name == "default" && is_one(*multiplier);
        if matches!(name.as_str(), "default" | "assign") && !is_plain_default {
            let expected = "another name: in a file this one means something else";
            problems.push(ValidationError::new("tier", name, expected));
        }
    }
    problems.or(())
}

/// To the three decimals that count.
fn is_one(multiplier: f64) -> bool {
    (multiplier - 1.0).abs() < 0.000_5
}

fn defaults(policy: &PolicyBuilder, headers: HeaderStyle) -> Section {
    let said = PolicyBuilder::default();
    let mut section = Section::default();
    if policy.warn_at.to_bits() != said.warn_at.to_bits() {
        section.set("warn_at", &policy.warn_at.to_string());
    }
    if headers.set() != HeaderStyle::default().set() {
        section.set("headers", &text(&headers.set().to_string()));
    }
    if headers.reset() != ResetStyle::default() {
        section.set("reset", &text(&headers.reset().to_string()));
    }
    if policy.on_store_failure != said.on_store_failure {
        section.set("on_store_failure", &text(policy.on_store_failure.name()));
    }
    if policy.local_share.to_bits() != said.local_share.to_bits() {
        section.set("local_share", &policy.local_share.to_string());
    }
    section
}

fn tiers(page: &mut Page, tiers: &Tiers) {
    let default = tiers.tiers.first().map_or("", |(name, _)| name);
    let nothing_said = tiers.tiers.len() == 1 && tiers.assigned.is_empty() && default == "default";
    if nothing_said {
        return;
    }
    let mut section = Section::default();
    section.set("default", &text(default));
    for (name, multiplier) in tiers.tiers.iter().filter(|(name, _)| name != "default") {
        section.set(name, &multiplier.to_string());
    }
    page.add("[tiers]", &section);
    let assigned = tiers.assigned.iter();
    let assigned = assigned.map(|(dimension, caller, tier)| (&**dimension, (&**caller, tier)));
    for (dimension, callers) in grouped(assigned) {
        let mut section = Section::default();
        for (caller, said) in grouped(callers.into_iter()) {
            // What was said last holds.
            if let Some(tier) = said.last() {
                section.set(caller, &text(tier));
            }
        }
        page.add(&heading(&["tiers", "assign", dimension]), &section);
    }
}

/// All that was said of each name, in the order in which the names first come.
fn grouped<'a, T>(said: impl Iterator<Item = (&'a str, T)>) -> Vec<(&'a str, Vec<T>)> {
    let mut known = HashMap::new();
    let mut groups: Vec<(&str, Vec<T>)> = Vec::new();
    for (name, value) in said {
        let at = *known.entry(name).or_insert(groups.len());
        if at == groups.len() {
            groups.push((name, Vec::new()));
        }
        groups[at].1.push(value);
    }
    groups
}

/// Rules that are nothing but quotas, on a line each; then the others.
fn global(page: &mut Page, policy: &PolicyBuilder) {
    let mut section = Section::default();
    let mut tables = Vec::new();
    for (name, rule) in [
        ("authenticated", &policy.authenticated),
        ("anonymous", &policy.anonymous),
    ] {
        let Some(rule) = rule else {
            continue;
        };
        let mut rule = rule.clone();
        if name == "anonymous" {
            // Which it is in any case.
            rule.unscaled = false;
        }
        let mut all = Section::default();
        settings(&mut all, &rule, policy.on_store_failure);
        let limit = quotas(&rule.quotas);
        let mut only_limit = Section::default();
        only_limit.set("limit", &limit);
        if all == only_limit {
            section.set(name, &limit);
        } else {
            tables.push((name, all));
        }
    }
    if !has_limits(policy) {
        // A file without any limit is taken for a mistake.
        section.set("authenticated", &text("unlimited"));
    }
    if policy.preflight == Preflight::Count {
        section.set("preflight", &text("count"));
    }
    if let Some(Ok(own)) = &policy.preflight_quota {
        section.set("preflight_quota", &quota(own));
    }
    page.add("[global]", &section);
    for (name, section) in tables {
        page.add(&heading(&["global", name]), &section);
    }
}

fn endpoint(route: &str, rule: &Rule, failure: OnStoreFailure) -> Section {
    let mut section = Section::default();
    section.set("route", &text(route));
    if let Some(name) = &rule.name {
        section.set("name", &text(name));
    }
    if let Some(category) = &rule.category {
        section.set("category", &text(category));
    }
    settings(&mut section, rule, failure);
    if rule.without_global {
        section.set("global", "false");
    }
    section
}

fn exempt(page: &mut Page, policy: &PolicyBuilder) {
    let exempt = &policy.exempt;
    let mut section = Section::default();
    let roles: Vec<&str> = exempt.roles.iter().map(|role| &**role).collect();
    let networks: Vec<&str> = policy.networks.iter().map(String::as_str).collect();
    let routes: Vec<&str> = policy.exempt_routes.iter().map(String::as_str).collect();
    for (key, names) in [("roles", roles), ("networks", networks), ("routes", routes)] {
        if !names.is_empty() {
            section.set(key, &list(names.into_iter().map(text)));
        }
    }
    for _ in &exempt.predicates {
        section.remark("Only code can say: requests of which a closure says so");
    }
    page.add("[exempt]", &section);
    let mut subjects = Section::default();
    let said = exempt.subjects.iter();
    for (dimension, names) in grouped(said.map(|(dimension, name)| (&**dimension, name))) {
        subjects.set(dimension, &list(names.into_iter().map(|name| text(name))));
    }
    page.add("[exempt.subjects]", &subjects);
}

/// As TOML has it, with as many digits as it takes. Files end with the year 2218, and whoever
/// says something later means: until further notice.
fn instant(at: Timestamp) -> String {
    /// 2218-12-31T23:59:59.999999Z
    const LAST: Timestamp = Timestamp::from_micros(7_857_648_000_000_000 - 1);
    let written = at.min(LAST).to_string();
    let written = written.trim_end_matches('Z').trim_end_matches('0');
    format!("{}Z", written.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_as_short_as_can_be() {
        for (micros, written) in [
            (1_796_104_800_000_000, "2026-12-01T06:00:00Z"),
            (1_796_104_800_500_000, "2026-12-01T06:00:00.5Z"),
            (1_796_104_800_000_010, "2026-12-01T06:00:00.00001Z"),
            (0, "1970-01-01T00:00:00Z"),
            (u64::MAX, "2218-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(instant(Timestamp::from_micros(micros)), written);
        }
    }
}
