//! Rules and quotas, as files say them.

use super::page::{Section, inline, list, text};
use crate::error::ValidationError;
use crate::policy::{Cost, Count, OnStoreFailure, Rule};
use crate::quota::Quota;

/// What a rule says, but for its name and where it applies.
pub(super) fn settings(section: &mut Section, rule: &Rule, default: OnStoreFailure) {
    if !rule.quotas.is_empty() {
        section.set("limit", &quotas(&rule.quotas));
    }
    if let Some(per) = &rule.per {
        section.set("per", &list(per.iter().map(|name| text(name))));
    }
    if rule.unscaled {
        section.set("scale", "false");
    }
    if !rule.tiers.is_empty() {
        let tiers = rule.tiers.iter();
        let tiers = tiers.map(|(tier, numbers)| (tier.as_str(), quotas(numbers)));
        section.set("tiers", &inline(tiers));
    }
    // Where a category may say something else, nothing goes without saying.
    let goes_without_saying = rule.category.is_none();
    if let Some(counted) = &rule.count
        && !(goes_without_saying && *counted == Count::all())
    {
        section.set("count", &count(counted));
    }
    match &rule.cost {
        Some(Cost::Fixed(1)) if goes_without_saying => {}
        // Numbers of TOML end there; it is more than any quota in any case.
        Some(Cost::Fixed(cost)) => {
            section.set("cost", &(*cost).min(i64::MAX.unsigned_abs()).to_string());
        }
        Some(Cost::Of(_)) => section.remark("cost: only code can say what each request costs"),
        None => {}
    }
    if let Some(message) = &rule.message {
        section.set("message", &text(message));
    }
    if let Some(suggestion) = &rule.suggestion {
        section.set("suggestion", &text(suggestion));
    }
    if let Some(outcome) = rule.on_store_failure
        && !(goes_without_saying && outcome == default)
    {
        section.set("on_store_failure", &text(outcome.name()));
    }
    if rule.dry_run {
        section.set("mode", &text("dry-run"));
    }
}

/// One quota, or a list of them. Those that are none are left out: what is printed has been
/// checked.
pub(super) fn quotas(quotas: &[Result<Quota, ValidationError>]) -> String {
    let mut written: Vec<String> = quotas.iter().flatten().map(quota).collect();
    match written.len() {
        1 => written.swap_remove(0),
        _ => list(written),
    }
}

/// The text of a quota, with windows as people say them: `500/hour` for `500/1h`.
pub(super) fn quota(quota: &Quota) -> String {
    const SAID: [(&str, &str); 6] = [
        ("1s", "second"),
        ("1m", "minute"),
        ("1h", "hour"),
        ("1d", "day"),
        ("7d", "week"),
        ("1mo", "month"),
    ];
    let short = quota.to_string();
    let Some((amount, rest)) = short.split_once('/') else {
        return text(&short);
    };
    let (window, rest) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
    let said = SAID.iter().find(|(short, _)| *short == window);
    let window = said.map_or(window, |(_, said)| said);
    text(&format!("{amount}/{window}{rest}"))
}

fn count(counted: &Count) -> String {
    let said = counted.to_string();
    if matches!(said.as_str(), "all" | "success" | "failure") {
        return text(&said);
    }
    let status = |status: &str| match status.parse::<u16>() {
        Ok(code) => code.to_string(),
        Err(_) => text(status),
    };
    list(said.split(", ").map(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_written_as_people_say_them() {
        for (written, printed) in [
            ("500/1h", "\"500/hour\""),
            ("5 per 60 seconds", "\"5/minute\""),
            ("5/15m", "\"5/15m\""),
            ("5/7d", "\"5/week\""),
            ("5/month, fixed-window", "\"5/month, fixed-window\""),
            (
                "50/s, token-bucket, burst 20",
                "\"50/second, token-bucket, burst 20\"",
            ),
            (
                "5/12mo, sliding-buckets, buckets 12",
                "\"5/12mo, sliding-buckets, buckets 12\"",
            ),
            ("unlimited", "\"unlimited\""),
            ("blocked", "\"blocked\""),
        ] {
            assert_eq!(quota(&written.parse().unwrap()), printed);
        }
    }

    #[test]
    fn statuses_are_written_as_short_as_can_be() {
        for (statuses, printed) in [
            (vec!["4xx", "5xx"], "\"failure\""),
            (vec!["404"], "[404]"),
            (vec!["429", "5xx"], "[\"5xx\", 429]"),
        ] {
            assert_eq!(count(&Count::statuses(statuses).unwrap()), printed);
        }
    }
}
