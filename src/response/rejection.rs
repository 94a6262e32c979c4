//! Denials of requests that are rejected before anything is counted.

use super::{Denial, DenialKind};
use crate::clock::Timestamp;
use crate::head::RequestHead;

impl<'a> Denial<'a> {
    /// The path can be read in several ways that cannot all be limited. `detail` is the message:
    /// what is wrong, and what is allowed.
    #[must_use]
    pub fn invalid_path(head: RequestHead<'a>, detail: &'a str, at: Timestamp) -> Self {
        Self::new(DenialKind::InvalidPath, head, at).with_detail(detail)
    }

    /// The path is too long to be limited. `detail` is the message.
    #[must_use]
    pub fn path_too_long(head: RequestHead<'a>, detail: &'a str, at: Timestamp) -> Self {
        Self::new(DenialKind::PathTooLong, head, at).with_detail(detail)
    }
}
