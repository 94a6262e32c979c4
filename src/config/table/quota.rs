//! Quotas: text, table, or a list of these.

use super::{KeySpec, PolicyReader, TableSpec, ValueKind};
use crate::config::problem::ConfigProblem;
use crate::config::suggest::did_you_mean;
use crate::config::tree::{ConfigValue, Setting};
use crate::error::ValidationError;
use crate::quota::{Algorithm, Quota, QuotaBuilder, Window};

use super::set_if;

pub(super) const ALGORITHMS: &[&str] = &[
    "sliding-window",
    "fixed-window",
    "sliding-buckets",
    "sliding-log",
    "token-bucket",
];

pub(in crate::config) static QUOTA: TableSpec = TableSpec::new(&[
    KeySpec::new(
        "limit",
        ValueKind::Whole("a whole number such as `500`"),
        "Amount per window.",
    )
    .aliases(&["amount", "max", "count"]),
    KeySpec::new(
        "window",
        ValueKind::Text("a window such as `\"1m\"` or `\"15 minutes\"`"),
        "Length of the window.",
    )
    .aliases(&["per", "period", "interval", "duration"]),
    KeySpec::new(
        "burst",
        ValueKind::Whole("a whole number such as `20`"),
        "Capacity of a token bucket. Default: the limit.",
    ),
    KeySpec::new(
        "buckets",
        ValueKind::Whole("a whole number such as `60`"),
        "Number of buckets in the window of sliding buckets.",
    )
    .default("60"),
    KeySpec::new(
        "algorithm",
        ValueKind::Choice(ALGORITHMS),
        "Algorithm. Default: that of the rule, or of `defaults`.",
    ),
])
.require(&["limit", "window"]);

/// Returns whether a table in the place of a rule is a quota: only quotas have a window.
pub(in crate::config) fn is_quota_table(table: &Setting<'_>) -> bool {
    table.get("window").is_some()
}

impl PolicyReader<'_> {
    /// Reads one quota or a list. Returns `None` if one of them is wrong.
    pub(super) fn quotas(
        &mut self,
        value: &Setting<'_>,
        algorithm: Algorithm,
    ) -> Option<Vec<Quota>> {
        let all: Vec<Option<Quota>> = value
            .one_or_more()
            .iter()
            .map(|item| self.quota(item, algorithm))
            .collect();
        all.into_iter().collect()
    }

    /// Reads one quota. `algorithm` applies if it names none.
    pub(super) fn quota(&mut self, value: &Setting<'_>, algorithm: Algorithm) -> Option<Quota> {
        match &value.node.value {
            ConfigValue::Text(text) => {
                let quota = Quota::parse_as(text, algorithm);
                quota.map_err(|error| self.report_quota(value, &error)).ok()
            }
            ConfigValue::Table(_) => self.quota_table(value, algorithm),
            _ => None,
        }
    }

    fn quota_table(&mut self, table: &Setting<'_>, algorithm: Algorithm) -> Option<Quota> {
        let window = table.get("window").and_then(|value| {
            let window: Result<Window, _> = value.text()?.parse();
            window
                .map_err(|error| self.report_quota(&value, &error))
                .ok()
        });
        let whole = |key| table.get(key).and_then(|value| value.whole());
        // A number that does not fit is out of the allowed range as well.
        let buckets = whole("buckets").map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        let algorithm = table.parse("algorithm").unwrap_or(algorithm);
        let builder = Quota::builder(whole("limit")?, window?).algorithm(algorithm);
        let builder = set_if(builder, whole("burst"), QuotaBuilder::burst);
        let builder = set_if(builder, buckets, QuotaBuilder::buckets);
        let quota = builder.build();
        quota
            .map_err(|error| {
                // The errors of the builder name its fields: `quota burst`.
                let key = error.field().strip_prefix("quota ").unwrap_or_default();
                let value = table.get(key);
                self.report_quota(value.as_ref().unwrap_or(table), &error);
            })
            .ok()
    }

    fn report_quota(&mut self, value: &Setting<'_>, error: &ValidationError) {
        let problem = ConfigProblem::invalid(value, error);
        self.report.push(problem.with_help(suggest(error)));
    }
}

fn suggest(error: &ValidationError) -> Option<String> {
    let units = ["second", "minute", "hour", "day", "week", "month"];
    let written = error
        .value()
        .trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    match error.field() {
        "quota window" => did_you_mean(written, units),
        "quota algorithm" => did_you_mean(written, ALGORITHMS.iter().copied()),
        "quota" => did_you_mean(written, ["unlimited", "blocked"]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_is_one_of_the_model() {
        for name in ALGORITHMS {
            assert_eq!(name.parse::<Algorithm>().unwrap().name(), *name);
        }
    }
}
