//! Reset of a caller's counters.

use super::super::overrides::no_such_rule;
use super::super::{RequestPipeline, Snapshot};
use super::{InspectedCaller, batches, is_counter_of};
use crate::batch::Check;
use crate::error::{Error, ValidationError};
use crate::store::{StoreAdmin, StoreFuture, no_admin};

impl RequestPipeline {
    /// Resets the counters of a caller: those of one rule, or all that are its own. Counters that it
    /// shares, for example with its tenant, are kept. Counters that a look-up omits are kept as well.
    pub(crate) fn reset(
        &self,
        inspected: &InspectedCaller,
        rule: Option<&str>,
    ) -> StoreFuture<(), Error> {
        let snapshot = self.snapshot.load();
        let caller = inspected.caller();
        let all = snapshot.policy.counters_of(&caller);
        let counters = all.filter(|of| !inspected.is_omitted(of));
        let Some(admin) = self.store.admin() else {
            return StoreFuture::ready(Err(no_admin().into()));
        };
        let local = self.local.get().map(|local| local as &dyn StoreAdmin);
        let stores = std::iter::once(admin).chain(local);
        let mut pending = Vec::new();
        if let Some(rule) = rule {
            let counters: Vec<_> = counters.filter(|of| of.rule == rule).collect();
            if counters.is_empty() {
                let error = not_counted(&snapshot, inspected, rule);
                return StoreFuture::ready(Err(error.into()));
            }
            let checks = counters
                .iter()
                .map(|of| Check::new(&of.subject, &of.quota.counter));
            let checks: Vec<_> = checks.collect();
            for store in stores {
                pending.extend(batches(&checks, |batch| store.reset(batch)));
            }
        } else {
            let subject = caller.subject();
            let mut subjects = vec![subject];
            for of in counters {
                if is_counter_of(&of.subject, &subject) && !subjects.contains(&of.subject) {
                    subjects.push(of.subject);
                }
            }
            for store in stores {
                pending.extend(subjects.iter().map(|subject| store.reset_subject(subject)));
            }
        }
        let end_denial = self.denial_end(&caller.subject(), rule);
        StoreFuture::all(pending).map(move |done| {
            done?;
            end_denial();
            Ok(())
        })
    }
}

/// Error for a rule without a counter to reset.
fn not_counted(snapshot: &Snapshot, inspected: &InspectedCaller, rule: &str) -> ValidationError {
    let mut omitted = snapshot.policy.counters_of(&inspected.caller());
    if omitted.any(|of| of.rule == rule && inspected.is_omitted(&of)) {
        let expected = format!("a rule that counts this caller; `{rule}` counts per IP: pass `ip`");
        return ValidationError::new("rule name", rule, expected);
    }
    let mut quotas = snapshot.policy.quotas().iter();
    if quotas.any(|quota| quota.counter.rule() == rule) {
        return ValidationError::new("rule name", rule, "a rule that counts this caller");
    }
    no_such_rule(&snapshot.policy, rule)
}
