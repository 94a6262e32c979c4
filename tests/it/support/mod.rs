//! Helpers that several test modules use.

pub(crate) mod clock;
pub(crate) mod http;
pub(crate) mod log;
pub(crate) mod random;
pub(crate) mod scripted_store;
pub(crate) mod sockets;
pub(crate) mod store_ext;
pub(crate) mod tokens;
pub(crate) mod waker;

use std::path::Path;

/// Returns the paths of the wrong settings that a builder reports.
pub(crate) fn error_paths(errors: &tollgate::ValidationErrors) -> Vec<&str> {
    let paths = errors.iter().map(|error| error.path().unwrap_or_default());
    paths.collect()
}

/// Returns the directory of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
