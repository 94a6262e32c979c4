//! Path from the dispatcher of a node back to its cluster.

use std::sync::Weak;

use super::Cluster;
use crate::store::redis::address::Endpoint;
use crate::store::redis::error::{ErrorCause, RedisStoreError};
use crate::store::redis::queue::QueuedRequest;
use crate::store::redis::redirect::Redirect;

/// What the dispatcher of a node needs from its cluster.
#[derive(Debug)]
pub(in crate::store::redis) struct NodeRoute {
    pub(super) cluster: Weak<Cluster>,
    pub(super) endpoint: Endpoint,
}

impl NodeRoute {
    /// Sends a request to where its server redirects it. The server has run nothing.
    pub(in crate::store::redis) fn follow(&self, mut request: QueuedRequest, redirect: &Redirect) {
        match self.cluster.upgrade() {
            Some(cluster) => cluster.follow(&self.endpoint, request, redirect),
            // The store was dropped.
            None => request.complete(Err(RedisStoreError::new(
                &"a cluster".into(),
                ErrorCause::NoRuntime,
            ))),
        }
    }

    /// Reloads the map if this error means that it may be outdated.
    pub(in crate::store::redis) fn report(&self, error: &RedisStoreError) {
        if error.doubts_slot_map()
            && let Some(cluster) = self.cluster.upgrade()
        {
            cluster.reload.notify_one();
        }
    }
}
