//! Identity from a request extension: [`Authenticated`].

use std::fmt;
use std::sync::Arc;

use super::source::{Identified, Identify, IdentifyContext};
use crate::head::RequestHead;
use crate::identity_types::Identity;

/// Identifies the caller that an authentication layer has verified, from a request extension.
///
/// ```
/// use tollgate::Identity;
/// use tollgate::identity::Authenticated;
///
/// #[derive(Clone)]
/// struct CurrentUser {
///     id: u64,
///     plan: &'static str,
/// }
///
/// let source = Authenticated::extension(|user: &CurrentUser| {
///     Identity::user(user.id.to_string()).tier(user.plan)
/// });
/// # let _ = source;
/// ```
///
/// A request without the extension has no identity from this source. The layer that sets it must run
/// first: in axum, add it after this one.
pub struct Authenticated {
    find: Box<FindIdentity>,
}

type FindIdentity = dyn Fn(&RequestHead<'_>) -> Option<Arc<Identity>> + Send + Sync;

impl Authenticated {
    /// Converts the extension of type `T` to an [`Identity`], or to an `Option<Identity>` if some
    /// values have no identity.
    #[must_use]
    pub fn extension<T, I>(convert: impl Fn(&T) -> I + Send + Sync + 'static) -> Self
    where
        T: Clone + Send + Sync + 'static,
        I: Into<Option<Identity>>,
    {
        Self {
            find: Box::new(move |head| {
                let identity = convert(head.extension::<T>()?).into()?;
                Some(Arc::new(identity))
            }),
        }
    }

    /// Uses the extension of type `Arc<Identity>`, else the one of type [`Identity`].
    #[must_use]
    pub fn identity() -> Self {
        Self {
            find: Box::new(|head| {
                let shared = head.extension::<Arc<Identity>>().cloned();
                shared.or_else(|| head.extension::<Identity>().cloned().map(Arc::new))
            }),
        }
    }
}

impl Identify for Authenticated {
    fn identify(&self, context: &IdentifyContext<'_>) -> Identified {
        (self.find)(&context.head()).map_or(Identified::Absent, Identified::known_shared)
    }

    fn description(&self) -> String {
        "request extension".to_owned()
    }
}

impl fmt::Debug for Authenticated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticated").finish_non_exhaustive()
    }
}
