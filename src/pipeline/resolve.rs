//! From the head of a request to its checks, an exemption or a rejection.

use super::context::RequestContext;
use super::routed_path::routed_path;
use super::{Rejection, RequestPipeline, Snapshot};
use crate::clock::Timestamp;
use crate::head::RequestHead;
use crate::policy::{Caller, Exemption, RoutedPath};
use crate::store::Overrides;

/// What is known of a request before anything is counted.
pub(super) enum Resolution {
    Exempt(Exemption),
    Reject(Rejection),
    /// The tier is not set yet.
    Limited(RequestContext),
}

impl RequestPipeline {
    /// Finds the caller and the checks of a request.
    ///
    /// Exempt routes come first, so that a health probe passes whatever credentials it has. A path
    /// is rejected last: an exempt caller has no rule that the path could evade.
    pub(super) fn resolve(
        &self,
        snapshot: &Snapshot,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Resolution {
        let policy = &snapshot.policy;
        let path = if policy.has_routes() {
            routed_path(head)
        } else {
            RoutedPath::default()
        };
        let resolved = match policy.resolve(head, &path) {
            Ok(resolved) => resolved,
            Err(exemption) => return Resolution::Exempt(exemption),
        };
        let endpoint = policy.endpoint_of(&resolved);
        let wall = self.wall_at(now);
        let is_rest_set = |overrides: &Overrides| overrides.maintenance_until(wall).is_some();
        if policy.in_maintenance(wall) || self.override_table().is_some_and(is_rest_set) {
            return Resolution::Exempt(Exemption::Maintenance);
        }
        let address = snapshot.client_ip().locate(head);
        if address.is_none() {
            self.telemetry.no_peer_address();
        }
        // The address of a trusted proxy is not exempt: the client behind it is unknown.
        let client = address.filter(|address| !address.is_proxy());
        if let Some(exemption) = policy.exempts(head, client.map(|address| address.ip())) {
            return Resolution::Exempt(exemption);
        }
        let identity = match self.identify(snapshot, endpoint, head, address, now) {
            Ok(identity) => identity,
            Err(response) => return Resolution::Reject((*response).into()),
        };
        if let Some(exemption) = policy.exempts_identity(identity.as_deref()) {
            return Resolution::Exempt(exemption);
        }
        let client_ip = address.map(|address| address.group());
        let caller = Caller {
            identity: identity.as_deref(),
            ip: client_ip,
        };
        let kind = policy.plan_kind(&caller, head);
        let mut planned = match policy.checks_of(&resolved, kind) {
            Ok(planned) => planned,
            Err(rejection) => {
                let rejection = self.reject_path(snapshot, rejection, client_ip, head, now);
                return Resolution::Reject(rejection);
            }
        };
        policy.adapt(&mut planned, &caller, head);
        Resolution::Limited(RequestContext {
            endpoint,
            planned,
            identity,
            client_ip,
            ..RequestContext::default()
        })
    }
}
