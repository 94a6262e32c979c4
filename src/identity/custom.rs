//! A source that is a closure: [`Custom`].

use std::fmt;

use super::source::{Identified, Identify, IdentifyContext};
use crate::head::RequestHead;
use crate::identity_types::Identity;

/// Whoever a closure says, from the head of the request.
///
/// `None` means that there is nothing here: the next source is asked. A source that also has
/// to tell wrong credentials from none implements [`Identify`].
///
/// ```
/// use tollgate::Identity;
/// use tollgate::identity::Custom;
///
/// // Behind a mesh that verifies client certificates and sets this header itself.
/// let who = Custom::new(|head| {
///     let service = head.header("x-mesh-service")?;
///     Some(Identity::new("service", service).role("service"))
/// });
/// # let _ = who;
/// ```
///
/// If the closure panics, no other source is asked, and the request is treated as one with a
/// wrong credential ([`InvalidReason::Custom`](super::InvalidReason::Custom)).
pub struct Custom {
    closure: Box<Closure>,
}

type Closure = dyn Fn(&RequestHead<'_>) -> Option<Identity> + Send + Sync;

impl Custom {
    /// Asks `closure`.
    #[must_use]
    pub fn new(
        closure: impl Fn(&RequestHead<'_>) -> Option<Identity> + Send + Sync + 'static,
    ) -> Self {
        Self {
            closure: Box::new(closure),
        }
    }
}

impl Identify for Custom {
    fn identify(&self, asking: &IdentifyContext<'_>) -> Identified {
        (self.closure)(&asking.head()).map_or(Identified::Absent, Identified::known)
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom").finish_non_exhaustive()
    }
}
