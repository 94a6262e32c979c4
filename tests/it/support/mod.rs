//! Helpers that several test modules use.

pub(crate) mod store_ext;

use std::path::Path;

/// The directory of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
