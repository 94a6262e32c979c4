//! Requests that are rejected before anything is counted.

use std::net::IpAddr;

use super::{Asked, Gate, Rules};
use crate::clock::Timestamp;
use crate::head::Head;
use crate::observe::Rejected;
use crate::policy::{Caller, PathRejection};
use crate::response::Denial;

impl Gate {
    /// Rejects a request because of its path.
    #[cold]
    pub(super) fn reject_path(
        &self,
        rules: &Rules,
        rejection: PathRejection,
        ip: Option<IpAddr>,
        head: &Head<'_>,
        now: Timestamp,
    ) -> Asked {
        let message = rejection.message();
        let denial = match rejection {
            PathRejection::TooLong => Denial::path_too_long(*head, message, now),
            _ => Denial::invalid_path(*head, message, now),
        };
        let caller = Caller { identity: None, ip };
        let rejected = Rejected {
            reason: rejection.reason(),
            head: *head,
            caller: caller.known_by(),
            request_id: denial.request_id().as_str(),
            now,
        };
        self.watch.rejected(&rejected);
        Asked::Denied(self.render(&denial, rules.style()).into())
    }
}
