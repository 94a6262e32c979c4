//! What requests are decided by, all of it in one snapshot.

use super::OnInvalid;
use super::labels::Labels;
use super::wrongs::Wrongs;
use crate::error::Problems;
use crate::headers::HeaderStyle;
use crate::identity::{Chain, ClientIp};
use crate::policy::Policy;
use crate::response::Template;

/// A policy with all that follows from it, and what a file says besides. Swapped as a whole.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(super) policy: Policy,
    pub(super) labels: Labels,
    /// One for each of the policy's terms.
    pub(super) messages: Box<[Option<Template>]>,
    pub(super) wrongs: Wrongs,
    around: Around,
}

/// How callers are found and told, which a policy does not say.
#[derive(Clone, Debug)]
pub(super) struct Around {
    pub(super) client_ip: ClientIp,
    pub(super) chain: Chain,
    pub(super) on_invalid: OnInvalid,
    pub(super) style: HeaderStyle,
}

impl Rules {
    pub(super) fn new(policy: Policy, wrongs: Wrongs, around: Around) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let messages = policy
            .all_terms()
            .iter()
            .map(|terms| {
                let template = terms.message.as_deref().map(Template::parse)?;
                problems.note(template.map_err(|wrong| {
                    let path = format!("{}.message", terms.path);
                    wrong.within(&terms.rule).at(path)
                }))
            })
            .collect();
        problems.or(Self {
            labels: Labels::new(&policy),
            policy,
            messages,
            wrongs,
            around,
        })
    }

    pub(super) const fn around(&self) -> &Around {
        &self.around
    }

    #[inline]
    pub(super) const fn client_ip(&self) -> &ClientIp {
        &self.around.client_ip
    }

    #[inline]
    pub(super) const fn chain(&self) -> &Chain {
        &self.around.chain
    }

    #[inline]
    pub(super) const fn on_invalid(&self) -> OnInvalid {
        self.around.on_invalid
    }

    #[inline]
    pub(super) const fn style(&self) -> HeaderStyle {
        self.around.style
    }
}
