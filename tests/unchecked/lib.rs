//! The extremes of `tests/it` once more, for a library that does not check for overflow, as in
//! release: what would panic there would wrap here. `scripts/test` has it built so.

#![cfg(test)]

#[path = "../it/properties/counters.rs"]
#[expect(dead_code, reason = "other properties use the rest")]
mod counters;
#[path = "../it/extremes/mod.rs"]
mod extremes;
#[path = "../it/reference.rs"]
mod reference;

#[path = "../it/support/store_ext.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod store_ext;

/// Path of this helper in `tests/it`. The others need dependencies that this package does not have.
mod support {
    pub(crate) use crate::store_ext;
}

/// Where `tests/it` has it.
mod properties {
    pub(crate) use crate::counters;
}
