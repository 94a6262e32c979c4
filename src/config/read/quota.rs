//! Quotas: text, table, or a list of these.

use super::PolicyReader;
use crate::config::problem::ConfigProblem;
use crate::config::suggest::did_you_mean;
use crate::config::tree::{ConfigValue, Setting};
use crate::error::ValidationError;
use crate::quota::{Algorithm, Quota, Window};

impl PolicyReader<'_> {
    /// All quotas of a value, unless one of them is wrong.
    pub(super) fn quotas(
        &mut self,
        setting: &Setting<'_>,
        algorithm: Algorithm,
    ) -> Option<Vec<Quota>> {
        let all: Vec<Option<Quota>> = setting
            .one_or_more()
            .iter()
            .map(|item| self.quota(item, algorithm))
            .collect();
        all.into_iter().collect()
    }

    /// One quota, counted by `algorithm` if it does not say otherwise.
    pub(super) fn quota(&mut self, setting: &Setting<'_>, algorithm: Algorithm) -> Option<Quota> {
        match &setting.node.value {
            ConfigValue::Text(text) => match Quota::parse_as(text, algorithm) {
                Ok(quota) => Some(quota),
                Err(wrong) => {
                    let problem = ConfigProblem::refused(setting, &wrong);
                    self.report.push(problem.with_help(meant(&wrong)));
                    None
                }
            },
            ConfigValue::Table(_) => self.quota_table(setting, algorithm),
            // Which the check has told.
            _ => None,
        }
    }

    fn quota_table(&mut self, setting: &Setting<'_>, algorithm: Algorithm) -> Option<Quota> {
        let window = setting.get("window").and_then(|window| {
            let read = window.text()?.parse::<Window>();
            if let Err(wrong) = &read {
                let problem = ConfigProblem::refused(&window, wrong);
                self.report.push(problem.with_help(meant(wrong)));
            }
            read.ok()
        });
        let algorithm = super::choice(setting, "algorithm").unwrap_or(algorithm);
        let whole = |key| setting.get(key).and_then(|value| value.whole());
        let mut builder = Quota::builder(whole("limit")?, window?).algorithm(algorithm);
        if let Some(burst) = whole("burst") {
            builder = builder.burst(burst);
        }
        if let Some(buckets) = whole("buckets") {
            // More than fits is more than is allowed.
            builder = builder.buckets(u32::try_from(buckets).unwrap_or(u32::MAX));
        }
        let built = builder.build();
        let at = built
            .as_ref()
            .err()
            .and_then(|wrong| setting.get(key_of(wrong)));
        self.report.note(at.as_ref().unwrap_or(setting), built)
    }
}

/// The key of a table of which the model speaks.
fn key_of(wrong: &ValidationError) -> &'static str {
    match wrong.field() {
        "quota amount" => "limit",
        "quota window" => "window",
        "quota burst" => "burst",
        "quota buckets" => "buckets",
        _ => "",
    }
}

fn meant(wrong: &ValidationError) -> Option<String> {
    let units = ["second", "minute", "hour", "day", "week", "month"];
    let algorithms = [
        Algorithm::SlidingWindow,
        Algorithm::FixedWindow,
        Algorithm::SlidingBuckets,
        Algorithm::SlidingLog,
        Algorithm::TokenBucket,
    ];
    let written = wrong
        .value()
        .trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    match wrong.field() {
        "quota window" => did_you_mean(written, units),
        "quota algorithm" => did_you_mean(written, algorithms.map(Algorithm::name)),
        "quota" => did_you_mean(written, ["unlimited", "blocked"]),
        _ => None,
    }
}
