//! Short forms for calls to a store.

use tollgate::{
    Batch, Check, Override, Store, StoreAdmin, StoreError, StoreFuture, Subject, Timestamp, Usage,
};

/// Calls of [`Store`], [`StoreAdmin`] and [`OverrideStore`](tollgate::OverrideStore) in one step.
pub(crate) trait StoreExt: Store {
    fn expect_admin(&self) -> &dyn StoreAdmin {
        self.admin().expect("a store with admin operations")
    }

    /// Decides a batch of one check. Returns its usage and the instant of the decision.
    fn decide_one(&self, check: &Check<'_>, now: Timestamp) -> StoreFuture<(Usage, Timestamp)> {
        let batch = match Batch::new(std::slice::from_ref(check)) {
            Ok(batch) => batch,
            Err(invalid) => {
                return StoreFuture::ready(Err(StoreError::permanent(invalid.to_string())));
            }
        };
        self.decide(&batch, now)
            .map(|usages| usages.map(|usages| (usages.usages()[0], usages.at())))
    }

    fn reset(&self, batch: &Batch<'_>) -> StoreFuture<()> {
        self.expect_admin().reset(batch)
    }

    fn reset_subject(&self, subject: &Subject<'_>) -> StoreFuture<()> {
        self.expect_admin().reset_subject(subject)
    }

    fn clear(&self) -> StoreFuture<()> {
        self.expect_admin().clear()
    }

    fn len(&self) -> StoreFuture<usize> {
        self.expect_admin().len()
    }

    fn sweep(&self, now: Timestamp) -> StoreFuture<usize> {
        self.expect_admin().sweep(now)
    }

    fn set_override(&self, new: Override) -> StoreFuture<()> {
        let overrides = self.overrides().expect("a store with overrides");
        overrides.set(new)
    }

    fn remove_override(&self, subject: &Subject<'_>, rule: &str) -> StoreFuture<bool> {
        let overrides = self.overrides().expect("a store with overrides");
        overrides.remove(subject, rule)
    }

    /// Returns the overrides that apply at `now`.
    fn override_list(&self, now: Timestamp) -> Vec<Override> {
        let overrides = self.overrides().expect("a store with overrides");
        overrides.table().list(now)
    }
}

impl<S: Store + ?Sized> StoreExt for S {}
