//! Quotas: text, table, or a list of these.

use super::{PolicyReader, TableSpec, ValueKind, keys};
use crate::config::suggest::did_you_mean;
use crate::config::tree::{ConfigValue, Setting};
use crate::error::{ValidationError, ValidationErrors};
use crate::quota::{Algorithm, Quota, QuotaBuilder, Window};

use super::set_if;

pub(in crate::config) static QUOTA: TableSpec = TableSpec::new(keys! {
    /// Amount per window.
    "limit": ValueKind::Whole("a whole number such as `500`"), aliases ["amount", "max", "count"];
    /// Length of the window.
    "window": ValueKind::Text("a window such as `\"1m\"` or `\"15 minutes\"`"),
        aliases ["per", "period", "interval", "duration"];
    /// Capacity of a token bucket. Default: the limit.
    "burst": ValueKind::Whole("a whole number such as `20`");
    /// Number of buckets in the window of sliding buckets.
    "buckets": ValueKind::Whole("a whole number such as `60`"), default "60";
    /// Algorithm. Default: that of the rule, or of `defaults`.
    "algorithm": ValueKind::Choice(Algorithm::NAMES);
})
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
                self.check_quota(value, quota)
            }
            ConfigValue::Table(_) => self.quota_table(value, algorithm),
            _ => None,
        }
    }

    fn quota_table(&mut self, table: &Setting<'_>, algorithm: Algorithm) -> Option<Quota> {
        let window = table.get("window").and_then(|value| {
            let window: Result<Window, ValidationError> = value.text()?.parse();
            self.check_quota(&value, window.map_err(ValidationErrors::from))
        });
        let whole = |key| table.get(key).and_then(|value| value.whole());
        // A number that does not fit is out of the allowed range as well.
        let buckets = whole("buckets").map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        let algorithm = table.parse("algorithm").unwrap_or(algorithm);
        let builder = Quota::builder(whole("limit")?, window?).algorithm(algorithm);
        let builder = set_if(builder, whole("burst"), QuotaBuilder::burst);
        let builder = set_if(builder, buckets, QuotaBuilder::buckets);
        self.check_quota(table, builder.build())
    }

    fn check_quota<T>(
        &mut self,
        value: &Setting<'_>,
        result: Result<T, ValidationErrors>,
    ) -> Option<T> {
        self.report
            .check_all_with(value, result, |error, _| suggest(error))
    }
}

fn suggest(error: &ValidationError) -> Option<String> {
    let units = ["second", "minute", "hour", "day", "week", "month"];
    let written = error
        .value()
        .trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    match error.field() {
        "quota window" => did_you_mean(written, units),
        "quota algorithm" => did_you_mean(written, Algorithm::NAMES.iter().copied()),
        "quota" => did_you_mean(written, ["unlimited", "blocked"]),
        _ => None,
    }
}
