//! Text form of an explanation.

use std::fmt::{self, Display, Formatter};

use super::explanation::{AppliedRule, Explanation, Scaling, SkipReason, SkippedRule, TierSource};
use crate::policy::OnStoreFailure;

/// Writes several lines of text.
impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Text(self, Paint { colors: false }).fmt(f)
    }
}

impl Explanation {
    /// Returns the text of `Display` with ANSI colours for a terminal.
    #[must_use]
    pub fn colored(&self) -> impl Display + '_ {
        Text(self, Paint { colors: true })
    }
}

struct Text<'a>(&'a Explanation, Paint);

/// Writes text with or without colours.
#[derive(Clone, Copy)]
struct Paint {
    colors: bool,
}

impl Paint {
    const BOLD: &'static str = "1";
    const DIM: &'static str = "2";
    const GREEN: &'static str = "1;32";
    const RED: &'static str = "1;31";

    fn write(self, f: &mut Formatter<'_>, code: &str, text: impl Display) -> fmt::Result {
        if self.colors {
            write!(f, "\x1b[{code}m{text}\x1b[0m")
        } else {
            text.fmt(f)
        }
    }
}

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(explanation, paint) = self;
        paint.write(f, Paint::BOLD, &explanation.request)?;
        write!(f, " by {}", explanation.caller)?;
        if let Some(at) = explanation.at {
            write!(f, " at {at}")?;
        }
        write!(f, "\n  endpoint  ")?;
        match &*explanation.endpoints {
            [] => writeln!(f, "no endpoint of the policy")?,
            [first, others @ ..] => {
                writeln!(f, "{first}")?;
                for other in others {
                    writeln!(f, "            {other}")?;
                }
            }
        }
        writeln!(f, "  tier      {}", Tier(explanation))?;
        if let Some(because) = &explanation.exempt_because {
            writeln!(f)?;
            paint.write(f, Paint::GREEN, "Exempt")?;
            writeln!(f, ": {because}. Nothing is counted.")?;
        } else if let Some(rejection) = explanation.rejection {
            writeln!(f)?;
            paint.write(f, Paint::RED, "Rejected")?;
            let reason = rejection.reason();
            writeln!(f, " ({reason}): {rejection} Nothing is counted.")?;
        } else if explanation.counted_by.is_empty() {
            writeln!(f, "\nNo rule counts it.")?;
        } else {
            writeln!(f, "\nCounted by, all or none:")?;
        }
        for (index, counted) in explanation.counted_by.iter().enumerate() {
            write!(f, "\n{:>3}. ", index + 1)?;
            paint.write(f, Paint::BOLD, &counted.policy)?;
            writeln!(f, "  {}", counted.quota)?;
            write!(f, "{counted}")?;
        }
        if !explanation.not_counted_by.is_empty() {
            writeln!(f, "\nNot counted by:\n")?;
        }
        for skipped in &explanation.not_counted_by {
            write!(f, "   - ")?;
            paint.write(f, Paint::DIM, skipped)?;
            writeln!(f)?;
        }
        Ok(())
    }
}

struct Tier<'a>(&'a Explanation);

impl Display for Tier<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Explanation {
            tier, multiplier, ..
        } = self.0;
        write!(f, "{tier} (times {multiplier}), ")?;
        match &self.0.tier_source {
            TierSource::Table => f.write_str("assigned to this caller by the policy"),
            TierSource::Identity => f.write_str("from the identity"),
            TierSource::Unknown(name) => {
                write!(
                    f,
                    "the default tier, because the policy has no tier `{name}`"
                )
            }
            TierSource::Default => f.write_str("the default tier"),
        }
    }
}

/// Writes the lines below the name of the quota.
impl Display for AppliedRule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "     rule        {} ({})", self.rule, self.kind)?;
        writeln!(f, "     counter     {}", self.counter)?;
        write!(f, "     limit       ")?;
        match self.scaling {
            _ if self.base == self.quota => writeln!(f, "{}, from the rule", self.base)?,
            Scaling::Never => writeln!(f, "{} in every tier", self.base)?,
            Scaling::Times(times) => writeln!(f, "{} times {times}", self.base)?,
            Scaling::Own => writeln!(
                f,
                "{}, the limit of the rule for this tier, instead of {}",
                self.quota, self.base
            )?,
        }
        write!(f, "     counts      ")?;
        match self.count.to_string().as_str() {
            "all" => write!(f, "every response")?,
            "success" => write!(f, "successful responses")?,
            "failure" => write!(f, "failed responses")?,
            some => write!(f, "responses with {some}")?,
        }
        writeln!(f, ", {} each", self.cost)?;
        let without_store = match self.on_store_failure {
            OnStoreFailure::Local => "counted in the memory of each process",
            OnStoreFailure::Allow => "allowed, not counted",
            OnStoreFailure::Deny => "rejected with 503",
        };
        writeln!(f, "     store down  {without_store}")?;
        if self.dry_run {
            writeln!(f, "     mode        dry-run: counts, never denies")?;
        }
        if self.quiet {
            writeln!(f, "     quiet       reported only when it denies")?;
        }
        Ok(())
    }
}

/// Writes one line: ``tenant (always-on): the caller has no `tenant` ``.
impl Display for SkippedRule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.rule, self.kind, self.why)
    }
}

impl Display for SkipReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exempt => f.write_str("the request is exempt"),
            Self::Rejected => f.write_str("the request is rejected"),
            Self::Replaced => f.write_str("the endpoint has a quota of its own instead"),
            Self::WithoutGlobal => f.write_str("the endpoint has `global = false`"),
            Self::OnlyAnonymous => f.write_str("it applies to unauthenticated callers"),
            Self::OnlyAuthenticated => f.write_str("it applies to authenticated callers"),
            Self::Preflight => {
                f.write_str("a preflight counts on it only if the response has no CORS headers")
            }
            Self::Lacks(dimension) => write!(f, "the caller has no `{dimension}`"),
        }
    }
}
