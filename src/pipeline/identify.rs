//! The identity of a caller, or the rejection of its credentials.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;

use super::reject::{UNAVAILABLE_FOR, render};
use super::{RequestPipeline, Snapshot};
use crate::catch_panic::catch_panic;
use crate::clock::Timestamp;
use crate::head::RequestHead;
use crate::headers::QuotaUsage;
use crate::identity::{
    ClientAddress, Identified, Identify, IdentifyContext, InvalidReason, OnInvalidCredentials,
};
use crate::identity_types::Identity;
use crate::observe::Denied;
use crate::policy::Caller;
use crate::response::Denial;
use crate::usage::Usage;

impl RequestPipeline {
    /// Returns the verified identity, `None` if there is none, or a rejection.
    ///
    /// Every credential is verified first. Only if none names a subject and one is wrong, the client
    /// IP is charged for it: a credential that names one is never rejected because of wrong ones.
    #[inline]
    pub(super) fn identify(
        &self,
        snapshot: &Snapshot,
        endpoint: usize,
        head: &RequestHead<'_>,
        address: Option<ClientAddress>,
        now: Timestamp,
    ) -> Result<Option<Arc<Identity>>, Box<Response<Bytes>>> {
        if snapshot.chain().is_empty() {
            return Ok(None);
        }
        let ip = address.map(|address| address.ip());
        let asking = IdentifyContext::new(*head, ip, self.wall_at(now));
        // A request that makes a source panic is treated as one with a wrong credential.
        let identified = catch_panic(|| snapshot.chain().identify(&asking))
            .unwrap_or(Identified::Invalid(InvalidReason::Custom));
        let group = address.map(|address| address.group());
        match identified {
            Identified::Known(identity) => Ok(Some(identity)),
            Identified::Absent => Ok(None),
            Identified::Invalid(reason) => {
                self.invalid(reason, snapshot, endpoint, head, address, now)?;
                Ok(None)
            }
            Identified::PartlyInvalid(identity, reason) => {
                self.invalid(reason, snapshot, endpoint, head, address, now)?;
                Ok(Some(identity))
            }
            Identified::Ambiguous => {
                let denial = Denial::ambiguous_credentials(*head, self.wall_at(now));
                let reason = "ambiguous-credentials";
                Err(Box::new(
                    self.reject_uncounted(snapshot, &denial, reason, group, now),
                ))
            }
            Identified::TooLarge => {
                let denial = Denial::unauthorized(*head, self.wall_at(now));
                let reason = "token-too-large";
                Err(Box::new(
                    self.reject_uncounted(snapshot, &denial, reason, group, now),
                ))
            }
        }
    }

    /// Charges a wrong credential, and returns the response if the request is rejected.
    #[cold]
    fn invalid(
        &self,
        reason: InvalidReason,
        snapshot: &Snapshot,
        endpoint: usize,
        head: &RequestHead<'_>,
        address: Option<ClientAddress>,
        now: Timestamp,
    ) -> Result<(), Box<Response<Bytes>>> {
        self.telemetry.invalid_credentials(reason.name());
        let ip = address.map(|address| address.group());
        if reason.is_charged()
            && let Err(usage) = snapshot.failed_auth.charge(ip, now)
        {
            let caller = Caller { identity: None, ip };
            let denied = Denied {
                endpoint: &snapshot.endpoints[endpoint],
                policy: &snapshot.failed_auth_counters,
                caller: caller.subject(),
                address: ip,
                #[cfg(feature = "admin")]
                tier: None,
                counter: snapshot.failed_auth.counter(),
                // One wrong credential.
                cost: 1,
                until: None,
                now,
            };
            return Err(Box::new(
                self.too_many_failures(snapshot, head, usage, &denied),
            ));
        }
        match snapshot.on_invalid_credentials() {
            OnInvalidCredentials::Anonymous => Ok(()),
            OnInvalidCredentials::Reject => {
                let at = self.wall_at(now);
                let denial = match reason {
                    // The token may be right: the client should send it again.
                    InvalidReason::KeysUnavailable => {
                        Denial::unavailable(*head, UNAVAILABLE_FOR, at)
                    }
                    _ => Denial::unauthorized(*head, at),
                };
                Err(Box::new(render(snapshot, &denial)))
            }
        }
    }

    fn too_many_failures(
        &self,
        snapshot: &Snapshot,
        head: &RequestHead<'_>,
        usage: Usage,
        denied: &Denied<'_>,
    ) -> Response<Bytes> {
        let usage = usage.offset_by(self.clock.wall_offset());
        let usage = QuotaUsage::new(snapshot.failed_auth.name(), usage);
        let denial = Denial::limited(*head, usage, self.wall_at(denied.now))
            .with_jitter(snapshot.retry_after_jitter());
        self.respond_denied(snapshot, &denial, denied)
    }
}
