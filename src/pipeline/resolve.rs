//! From the head of a request to its checks, an exemption or a rejection.

use std::sync::Arc;

use super::context::RequestContext;
use super::routed_path::routed_path;
use super::{Rejection, RequestPipeline, Snapshot};
use crate::clock::Timestamp;
use crate::head::RequestHead;
use crate::identity_types::Identity;
use crate::policy::{Caller, Exemption, RoutedPath};
use crate::store::Overrides;

/// What is known of a request before anything is counted.
pub(super) enum Resolution {
    /// With the identity, if it is the reason.
    Exempt(Exemption, Option<Arc<Identity>>),
    Reject(Box<Rejection>),
    /// The caller and the checks are in the context. Its tier is not set yet.
    Limited,
}

impl RequestPipeline {
    /// Finds the caller and the checks of a request, and writes them to its empty context. Returned by
    /// value, the context would be copied three times (180 instructions).
    ///
    /// Exempt routes come first, so that a health probe passes whatever credentials it has. A path
    /// is rejected last: an exempt caller has no rule that the path could evade.
    pub(super) fn resolve(
        &self,
        snapshot: &Snapshot,
        head: &RequestHead<'_>,
        now: Timestamp,
        context: &mut RequestContext,
    ) -> Resolution {
        let policy = &snapshot.policy;
        let path = if policy.has_routes() {
            routed_path(head)
        } else {
            RoutedPath::default()
        };
        let resolved = match policy.resolve(head, &path) {
            Ok(resolved) => resolved,
            Err(exemption) => return Resolution::Exempt(exemption, None),
        };
        let endpoint = policy.endpoint_of(&resolved);
        let wall = self.wall_at(now);
        let is_maintenance_on = |overrides: &Overrides| overrides.maintenance_until(wall).is_some();
        if policy.in_maintenance(wall) || self.override_table().is_some_and(is_maintenance_on) {
            return Resolution::Exempt(Exemption::Maintenance, None);
        }
        self.checks.check_headers(snapshot.client_ip(), head, now);
        let address = snapshot.client_ip().locate(head);
        if address.is_none() {
            self.telemetry.no_peer_address();
        }
        // The address of a trusted proxy is not exempt: the client behind it is unknown.
        let client = address.filter(|address| !address.is_proxy());
        if let Some(exemption) = policy.exempts(head, client.map(|address| address.ip())) {
            return Resolution::Exempt(exemption, None);
        }
        let identity = match self.identify(snapshot, endpoint, head, address, now) {
            Ok(identity) => identity,
            Err(response) => return Resolution::Reject(Box::new((*response).into())),
        };
        if let Some(exemption) = policy.exempts_identity(identity.as_deref()) {
            return Resolution::Exempt(exemption, identity);
        }
        let client_ip = address.map(|address| address.group());
        let caller = Caller {
            identity: identity.as_deref(),
            ip: client_ip,
        };
        let kind = policy.plan_kind(&caller, head);
        if let Err(rejection) = policy.set_checks(&mut context.planned, &resolved, kind) {
            let rejection = self.reject_path(snapshot, rejection, client_ip, head, now);
            return Resolution::Reject(Box::new(rejection));
        }
        policy.adapt(&mut context.planned, &caller, head);
        context.endpoint = endpoint;
        context.client_ip = client_ip;
        context.identity = identity;
        Resolution::Limited
    }
}
