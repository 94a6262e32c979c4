//! Identity from a closure: [`Custom`].

use std::fmt;

use super::source::{Identified, Identify, IdentifyContext};
use crate::head::RequestHead;
use crate::identity_types::Identity;

/// Identifies callers with a closure over the head of the request.
///
/// `None` means that the request has no credential for this source: the next source is called. A
/// source that also distinguishes wrong credentials from missing ones implements [`Identify`].
///
/// ```
/// use tollgate::Identity;
/// use tollgate::identity::Custom;
///
/// // Behind a mesh that verifies client certificates and sets this header itself.
/// let source = Custom::new(|head| {
///     let service = head.header("x-mesh-service")?;
///     Some(Identity::new("service", service).role("service"))
/// });
/// # let _ = source;
/// ```
///
/// If the closure panics, no other source is called, and the request is treated as one with a wrong
/// credential ([`InvalidReason::Custom`](super::InvalidReason::Custom)).
pub struct Custom {
    identify: Box<IdentifyRequest>,
}

type IdentifyRequest = dyn Fn(&RequestHead<'_>) -> Option<Identity> + Send + Sync;

impl Custom {
    /// Creates a source that calls `identify`.
    #[must_use]
    pub fn new(
        identify: impl Fn(&RequestHead<'_>) -> Option<Identity> + Send + Sync + 'static,
    ) -> Self {
        Self {
            identify: Box::new(identify),
        }
    }
}

impl Identify for Custom {
    fn identify(&self, context: &IdentifyContext<'_>) -> Identified {
        (self.identify)(&context.head()).map_or(Identified::Absent, Identified::known)
    }

    fn description(&self) -> String {
        "closure".to_owned()
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom").finish_non_exhaustive()
    }
}
