//! What the headers of a response are to say of one quota.

use std::sync::Arc;

use http::HeaderMap;

use super::labels::Named;
use crate::clock::Timestamp;
use crate::decision::Usage;
use crate::headers::{self, HeaderStyle, Report, Standing};

/// How the only quota of a request stands, until the response is there. Small, since it goes from
/// hand to hand with it; and nothing of it is on the heap.
pub(crate) struct Note {
    pub(super) named: Arc<Named>,
    pub(super) usage: Usage,
    pub(super) at: Timestamp,
    pub(super) style: HeaderStyle,
    /// Whether the caller is to be warned.
    pub(super) warns: bool,
}

impl Note {
    /// Tells the caller how things stand.
    #[inline]
    pub(crate) fn annotate(&self, headers: &mut HeaderMap) {
        let binding = Standing::new(&self.named.label, self.usage);
        let report = Report::new(binding, self.at).with_warning(self.warns);
        // Made only where it is asked for, which the usual headers do not.
        let only = std::iter::once_with(|| binding);
        headers::annotate(self.style, headers, &report, only);
    }
}
