//! Limits that are set at run time.

use super::Gate;
use crate::error::{Error, Invalid};
use crate::key::Subject;
use crate::observe;
use crate::policy::Policy;
use crate::store::{Answer, Override};

impl Gate {
    /// Sets a limit for a subject under a rule of the policy.
    pub(crate) fn set_override(&self, new: Override) -> Answer<(), Error> {
        let rules = self.rules.load();
        if let Err(wrong) = fits(&rules.policy, &new) {
            return Answer::ready(Err(wrong.into()));
        }
        let new = new.in_network(|address| rules.client_ip().group(address));
        // Nobody may ever list them, and those that are over would add up.
        if let Some(known) = self.store.overrides() {
            known.sweep(self.clock.now());
        }
        let (rule, quota, until) = (new.rule().to_owned(), *new.quota(), new.ends());
        self.store.set_override(new).map(move |set| {
            set?;
            observe::overridden(&rule, Some(&quota), until);
            Ok(())
        })
    }

    /// Removes the limits of a subject under a rule.
    pub(crate) fn remove_override(&self, subject: Subject<'_>, rule: &str) -> Answer<bool, Error> {
        let rules = self.rules.load();
        let of = Override::of(subject, rule).in_network(|address| rules.client_ip().group(address));
        let answer = self.store.remove_override(&of.subject(), rule);
        let rule = rule.to_owned();
        answer.map(move |removed| {
            let removed = removed?;
            if removed {
                observe::overridden(&rule, None, None);
            }
            Ok(removed)
        })
    }

    /// Those that apply.
    pub(crate) fn overrides(&self) -> Vec<Override> {
        let overrides = self.store.overrides();
        overrides.map_or_else(Vec::new, |known| known.list(self.clock.now()))
    }
}

/// Whether the policy has a rule of that name, with a quota of that window.
fn fits(policy: &Policy, new: &Override) -> Result<(), Invalid> {
    let of_rule = policy.lines().iter().map(|line| &line.counter);
    let of_rule: Vec<_> = of_rule
        .filter(|counter| counter.rule() == new.rule())
        .collect();
    if of_rule.is_empty() {
        let mut names: Vec<&str> = policy
            .lines()
            .iter()
            .map(|line| line.counter.rule())
            .collect();
        names.sort_unstable();
        names.dedup();
        let expected = format!("a rule of the policy: {}", names.join(", "));
        return Err(Invalid::new("rule name", new.rule(), expected));
    }
    if of_rule
        .iter()
        .any(|counter| new.applied_to(counter.quota()).is_some())
    {
        return Ok(());
    }
    let mut windows: Vec<String> = of_rule
        .iter()
        .map(|counter| format!("`{}`", counter.quota()))
        .collect();
    windows.sort_unstable();
    windows.dedup();
    let expected = format!(
        "an amount that can be counted in the window of {}, or `unlimited` or `blocked`",
        windows.join(" or ")
    );
    Err(Invalid::new("override", new.quota(), expected))
}
