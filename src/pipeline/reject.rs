//! Requests that are rejected before anything is counted.

use std::net::IpAddr;

use bytes::Bytes;
use http::Response;

use super::{Evaluation, RequestPipeline, Snapshot};
use crate::clock::Timestamp;
use crate::head::RequestHead;
use crate::observe::Rejected;
use crate::policy::{Caller, PathRejection};
use crate::response::Denial;

impl RequestPipeline {
    /// Rejects a request because of its path.
    #[cold]
    pub(super) fn reject_path(
        &self,
        rules: &Snapshot,
        rejection: PathRejection,
        ip: Option<IpAddr>,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Evaluation {
        let (message, at) = (rejection.message(), self.wall(now));
        let denial = match rejection {
            PathRejection::TooLong => Denial::path_too_long(*head, message, at),
            _ => Denial::invalid_path(*head, message, at),
        };
        let reason = rejection.reason();
        Evaluation::Denied(self.reject(rules, &denial, reason, ip, now).into())
    }

    /// Reports and renders the rejection of a request that is not counted. `ip` is the group of the
    /// client IP, `now` an instant of the monotonic clock.
    #[cold]
    pub(super) fn reject(
        &self,
        rules: &Snapshot,
        denial: &Denial<'_>,
        reason: &'static str,
        ip: Option<IpAddr>,
        now: Timestamp,
    ) -> Response<Bytes> {
        let caller = Caller { identity: None, ip };
        self.watch.rejected(&Rejected {
            reason,
            head: denial.head(),
            caller: caller.known_by(),
            request_id: denial.request_id().as_str(),
            now,
        });
        self.render(denial, rules.style())
    }
}
