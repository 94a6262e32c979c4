//! What a layer before this one has found out: [`Authenticated`].

use std::fmt;
use std::sync::Arc;

use super::source::{Identified, Identify, IdentifyContext};
use crate::head::RequestHead;
use crate::identity_types::Identity;

/// The caller that an authentication layer before this one has verified, from an extension
/// of the request.
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
/// let who = Authenticated::extension(|user: &CurrentUser| {
///     Identity::user(user.id.to_string()).tier(user.plan)
/// });
/// # let _ = who;
/// ```
///
/// Without the extension there is nobody here: the layer that sets it has to run first, which
/// in axum means to be added later.
pub struct Authenticated {
    find: Box<Find>,
}

type Find = dyn Fn(&RequestHead<'_>) -> Option<Arc<Identity>> + Send + Sync;

impl Authenticated {
    /// Whoever `who` makes of the extension of type `T`: an [`Identity`], or an
    /// `Option<Identity>` where some of them are nobody.
    #[must_use]
    pub fn extension<T, I>(who: impl Fn(&T) -> I + Send + Sync + 'static) -> Self
    where
        T: Clone + Send + Sync + 'static,
        I: Into<Option<Identity>>,
    {
        Self {
            find: Box::new(move |head| {
                let identity = who(head.extension::<T>()?).into()?;
                Some(Arc::new(identity))
            }),
        }
    }

    /// The extension of type `Arc<Identity>`, or [`Identity`].
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
    fn identify(&self, asking: &IdentifyContext<'_>) -> Identified {
        (self.find)(&asking.head()).map_or(Identified::Absent, Identified::known_shared)
    }
}

impl fmt::Debug for Authenticated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticated").finish_non_exhaustive()
    }
}
