//! The identity of a caller, or the rejection of its credentials.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;

use super::{Gate, OnInvalid, Rules};
use crate::calm::calmly;
use crate::clock::Timestamp;
use crate::decision::Usage;
use crate::head::Head;
use crate::headers::Standing;
use crate::identity::{Asking, ClientAddress, Identified, Identify, InvalidReason};
use crate::observe::Denied;
use crate::policy::Caller;
use crate::response::Denial;
use crate::who::Identity;

impl Gate {
    /// Returns the verified identity, `None` if there is none, or a rejection.
    ///
    /// Every credential is verified first. Only if none is accepted and one is wrong, the client
    /// IP is charged for it: a valid credential is never rejected because of wrong ones.
    #[inline]
    pub(super) fn identify(
        &self,
        rules: &Rules,
        endpoint: usize,
        head: &Head<'_>,
        address: Option<ClientAddress>,
        now: Timestamp,
    ) -> Result<Option<Arc<Identity>>, Box<Response<Bytes>>> {
        if rules.chain().is_empty() {
            return Ok(None);
        }
        let asking = Asking::new(*head, address.map(|address| address.ip()), now);
        // A request that makes a source panic is treated as one with a wrong credential.
        let identified = calmly(|| rules.chain().identify(&asking))
            .unwrap_or(Identified::Invalid(InvalidReason::Custom));
        match identified {
            Identified::Known(identity) => Ok(Some(identity)),
            Identified::Absent => Ok(None),
            Identified::Invalid(reason) => {
                self.invalid(reason, rules, endpoint, head, address, now)?;
                Ok(None)
            }
            Identified::Ambiguous => {
                let denial = Denial::ambiguous_credentials(*head, now);
                Err(self.reject(rules, &denial, "ambiguous-credentials"))
            }
            Identified::TooLarge => {
                let denial = Denial::unauthorized(*head, now);
                Err(self.reject(rules, &denial, "token-too-large"))
            }
        }
    }

    /// Reports and renders the rejection of a request that is not counted.
    #[cold]
    fn reject(
        &self,
        rules: &Rules,
        denial: &Denial<'_>,
        reason: &'static str,
    ) -> Box<Response<Bytes>> {
        let id = denial.request_id().as_str();
        self.watch.rejected(reason, &denial.head(), id, denial.at());
        Box::new(self.render(denial, rules.style()))
    }

    /// Charges a wrong credential, and returns the response if the request is rejected.
    #[cold]
    fn invalid(
        &self,
        reason: InvalidReason,
        rules: &Rules,
        endpoint: usize,
        head: &Head<'_>,
        address: Option<ClientAddress>,
        now: Timestamp,
    ) -> Result<(), Box<Response<Bytes>>> {
        self.watch.invalid_credentials(reason.as_str());
        let ip = address.map(|address| address.group());
        if reason.is_charged()
            && let Err(usage) = rules.failed_auth.charge(ip, now)
        {
            let caller = Caller { identity: None, ip };
            let denied = Denied {
                endpoint: &rules.endpoints[endpoint],
                policy: &rules.failed_auth_tally,
                caller: caller.known_by(),
                address: ip,
                counter: rules.failed_auth.counter(),
                until: None,
                now,
            };
            return Err(Box::new(
                self.too_many_failures(rules, head, usage, &denied),
            ));
        }
        match rules.on_invalid() {
            OnInvalid::Anonymous => Ok(()),
            OnInvalid::Reject => {
                let denial = Denial::unauthorized(*head, now);
                Err(Box::new(self.render(&denial, rules.style())))
            }
        }
    }

    fn too_many_failures(
        &self,
        rules: &Rules,
        head: &Head<'_>,
        usage: Usage,
        denied: &Denied<'_>,
    ) -> Response<Bytes> {
        let standing = Standing::new(rules.failed_auth.label(), usage);
        let denial = Denial::limited(*head, standing, denied.now);
        self.turn_away(&denial, denied, rules.style())
    }
}
