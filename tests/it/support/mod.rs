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

/// Returns the directory of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
