//! Identity sources, with valid and hostile credentials.

mod cached_tokens;
mod client_ip;
mod jwt_settings;
mod nat64;
mod refused_tokens;
mod several_tokens;
mod sources;
mod token_without_user;
mod tokens;

use std::sync::Arc;

use http::Request;
use tollgate::identity::{Identified, Identify, IdentifyContext, InvalidReason};
use tollgate::{Identity, RequestHead, Timestamp};

use crate::support::tokens::{NOW, request};

/// Result of a source for one request.
struct Found {
    found: Identified,
}

impl Found {
    #[track_caller]
    fn known(self) -> Arc<Identity> {
        match self.found {
            Identified::Known(identity) => identity,
            other => panic!("expected an identity, found {other:?}"),
        }
    }

    #[track_caller]
    fn is_invalid(&self) {
        let found = &self.found;
        assert!(matches!(found, Identified::Invalid(_)), "found {found:?}");
    }

    #[track_caller]
    fn is_invalid_for(&self, reason: InvalidReason) {
        match &self.found {
            Identified::Invalid(found) => assert_eq!(*found, reason),
            other => panic!("expected {reason:?}, found {other:?}"),
        }
    }

    /// Verified, without a user.
    #[track_caller]
    fn unauthenticated(self) -> Arc<Identity> {
        let identity = self.known();
        assert_eq!(identity.primary(), None);
        identity
    }

    /// Verified, without a user, beside a credential that is not accepted.
    #[track_caller]
    fn partly_invalid_for(self, reason: InvalidReason) -> Arc<Identity> {
        match self.found {
            Identified::PartlyInvalid(identity, found) if found == reason => identity,
            other => panic!("expected {reason:?} beside an identity, found {other:?}"),
        }
    }

    #[track_caller]
    fn is_ambiguous(&self) {
        let found = &self.found;
        assert!(matches!(found, Identified::Ambiguous), "found {found:?}");
    }

    #[track_caller]
    fn is_too_large(&self) {
        let found = &self.found;
        assert!(matches!(found, Identified::TooLarge), "found {found:?}");
    }

    #[track_caller]
    fn is_absent(&self) {
        let found = &self.found;
        assert!(matches!(found, Identified::Absent), "found {found:?}");
    }
}

fn identify_at(source: &dyn Identify, request: &Request<()>, now: Timestamp) -> Found {
    let found = source.identify(&IdentifyContext::new(RequestHead::of(request), None, now));
    Found { found }
}

fn identify(source: &dyn Identify, request: &Request<()>) -> Found {
    identify_at(source, request, Timestamp::from_secs(NOW))
}
