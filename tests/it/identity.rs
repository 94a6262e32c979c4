//! Who is asking, also when they lie.

#[cfg(feature = "jwt")]
mod cached_tokens;
mod client_ip;
#[cfg(feature = "jwt")]
pub(crate) mod forge;
#[cfg(feature = "jwt")]
mod jwt_settings;
#[cfg(all(feature = "jwt", feature = "tracing"))]
mod refused_tokens;
mod sources;
#[cfg(feature = "jwt")]
mod tokens;

use std::cell::Cell;
use std::sync::Arc;

use http::Request;
use tollgate::identity::{Asking, Identified, Identify};
use tollgate::{Head, Identity, Timestamp};

/// The present of these tests: 2025-01-01.
pub(crate) const NOW: u64 = 1_735_689_600;

/// What a source was asked, and answered.
struct Asked {
    found: Identified,
    /// How often it wanted to know whether it may verify.
    verifications: u32,
}

impl Asked {
    fn known(self) -> Arc<Identity> {
        match self.found {
            Identified::Known(identity) => identity,
            other => panic!("expected somebody, found {other:?}"),
        }
    }

    #[track_caller]
    fn is_invalid(&self) {
        let found = &self.found;
        assert!(matches!(found, Identified::Invalid), "found {found:?}");
    }

    #[track_caller]
    fn is_absent(&self) {
        let found = &self.found;
        assert!(matches!(found, Identified::Absent), "found {found:?}");
    }
}

fn ask_at(source: &dyn Identify, request: &Request<()>, now: Timestamp) -> Asked {
    ask_if(source, request, now, true)
}

fn ask(source: &dyn Identify, request: &Request<()>) -> Asked {
    ask_at(source, request, Timestamp::from_secs(NOW))
}

fn ask_if(source: &dyn Identify, request: &Request<()>, now: Timestamp, may: bool) -> Asked {
    let verifications = Cell::new(0);
    let afford = || {
        verifications.set(verifications.get() + 1);
        may
    };
    let found = source.identify(&Asking::new(Head::of(request), None, now, &afford));
    Asked {
        found,
        verifications: verifications.get(),
    }
}

fn request(headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::get("/");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}
