//! Limits that are set at run time, for one subject of a limiter.

use super::Limiter;
use crate::clock;
use crate::error::{Error, ValidationError};
use crate::key::{Counter, Subject};
use crate::observe;
use crate::store::{Override, StoreFuture, no_overrides};

impl Limiter {
    /// Sets another limit for one subject, or for all subjects that have a dimension, in the
    /// store: for all who share it, within a second. What was counted stays counted.
    ///
    /// ```
    /// use tollgate::{Limiter, Override};
    ///
    /// let agent = Limiter::builder().name("agent").quota("10/minute").build()?;
    /// let limit_of = |group, user| agent.peek([("group", group), ("user", user)]).wait();
    ///
    /// // Each member of this group has five a minute from now on.
    /// agent.set_override(Override::new([("group", "C123")], "agent", "5/minute")?).wait()?;
    /// assert_eq!(limit_of("C123", "ada")?.limit(), 5);
    /// assert_eq!(limit_of("C124", "ada")?.limit(), 10);
    ///
    /// assert!(agent.remove_override([("group", "C123")]).wait()?);
    /// assert_eq!(limit_of("C123", "ada")?.limit(), 10);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    ///
    /// The rule of the override is the [name](crate::LimiterBuilder::name) of the limiter. What is
    /// for a subject as a whole comes before what is for a dimension of it, and of those an earlier
    /// one before a later. A limit that is set [for one call](crate::CheckBuilder::limit) comes before all.
    pub fn set_override(&self, new: Override) -> StoreFuture<(), Error> {
        if let Err(wrong) = self.fits(&new) {
            return StoreFuture::ready(Err(wrong.into()));
        }
        // Otherwise expired overrides would accumulate if they are never listed.
        let Some(store) = self.inner.store.overrides() else {
            return StoreFuture::ready(Err(no_overrides().into()));
        };
        store.table().sweep(clock::wall_now(&*self.inner.clock));
        let (rule, quota, until) = (new.rule().to_owned(), *new.quota(), new.expires_at());
        store.set(new).map(move |set| {
            set?;
            observe::overridden(&rule, Some(&quota), until);
            Ok(())
        })
    }

    /// Removes the limits that were set for exactly this subject. Returns whether there were any.
    pub fn remove_override<'a>(&self, key: impl Into<Subject<'a>>) -> StoreFuture<bool, Error> {
        // As it is kept: addresses that were written as text are addresses.
        let of = Override::of(key.into(), self.rule());
        let Some(store) = self.inner.store.overrides() else {
            return StoreFuture::ready(Ok(false));
        };
        let answer = store.remove(&of.subject(), self.rule());
        let rule = self.rule().to_owned();
        answer.map(move |removed| {
            let removed = removed?;
            if removed {
                observe::overridden(&rule, None, None);
            }
            Ok(removed)
        })
    }

    /// The limits of this limiter that were set at run time and still apply.
    #[must_use]
    pub fn overrides(&self) -> Vec<Override> {
        let known = self.inner.store.overrides();
        let wall = clock::wall_now(&*self.inner.clock);
        let mut all = known.map_or_else(Vec::new, |known| known.table().list(wall));
        all.retain(|known| known.rule() == self.rule());
        all
    }

    fn rule(&self) -> &str {
        self.counters()[0].rule()
    }

    /// Whether it is for this limiter, and for one of its quotas.
    fn fits(&self, new: &Override) -> Result<(), ValidationError> {
        if new.rule() != self.rule() {
            let expected = format!("the name of the limiter, `{}`", self.rule());
            return Err(ValidationError::new("rule name", new.rule(), expected));
        }
        let mut quotas = self.counters().iter().map(Counter::quota);
        if quotas.any(|quota| new.applied_to(quota).is_some()) {
            return Ok(());
        }
        let quotas = self.counters().iter();
        let quotas: Vec<String> = quotas.map(|own| format!("`{}`", own.quota())).collect();
        let expected = format!(
            "an amount that can be counted in the window of {}, or `unlimited` or `blocked`",
            quotas.join(" or ")
        );
        Err(ValidationError::new("override", new.quota(), expected))
    }
}
