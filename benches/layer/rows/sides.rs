//! Services under test, by name and work.

use tollgate::headers::HeaderSet;
use tower::Layer as _;

use crate::drive::Side;
use crate::ours;
use crate::router::{Nothing, bare};
use crate::theirs::{axum_gcra, axum_governor, tower_governor};
use crate::work::Kind::{New, Plain, Token};
use crate::work::{AMPLE, SCARCE};

pub const BARE: &str = "bare";
pub const NOTHING: &str = "nothing";
pub const TOLLGATE: &str = "tollgate";
pub const BARE_BEFORE: &str = "bare-0.7";
pub const NO_OVERRIDE: &str = "no override";

/// Returns the service under test of this name for this work.
///
/// | work | description |
/// |---|---|
/// | `plain` | one quota per address, no headers |
/// | `sliding` | `plain`, with the default algorithm |
/// | `headers` | `plain`, with `X-RateLimit-*` headers |
/// | `both` | `plain`, with both sets of headers |
/// | `outside` | `plain`, around the router instead of within |
/// | `route` | an endpoint rule and the global rule, in a policy of 20 endpoints |
/// | `route-renamed` | `route`, with another name for the parameter than the router has |
/// | `route-outside` | `route`, around the router |
/// | `token` | three quotas of a caller known by a token, with headers |
/// | `token-both` | `token`, with both sets of headers |
/// | `override` | `headers`, with an override for another address |
/// | `new` | `plain`, from an address that no request had before |
/// | `new-outside` | `new`, around the router |
/// | `denied` | all quotas are exhausted |
/// | `denied-outside` | `denied`, around the router |
pub fn named(side: &str, work: &str) -> Option<Side> {
    let router = bare();
    Some(match (side, work) {
        (BARE, "token") => Side::new(BARE, Token, router),
        (BARE, "new") => Side::new(BARE, New, router),
        (BARE, _) => Side::new(BARE, Plain, router),
        (BARE_BEFORE, _) => Side::before(BARE_BEFORE, Plain, axum_gcra::bare()),

        (NOTHING, "plain") => Side::new(NOTHING, Plain, router.layer(Nothing)),
        (NOTHING, "outside") => Side::new(NOTHING, Plain, Nothing.layer(router)),

        (TOLLGATE, "plain") => ours(router.layer(ours::layer(HeaderSet::None))),
        (TOLLGATE, "sliding") => ours(router.layer(ours::sliding())),
        (TOLLGATE, "headers") => ours(router.layer(ours::layer(HeaderSet::Legacy))),
        (TOLLGATE, "override") => ours(router.layer(ours::with_override(HeaderSet::Legacy))),
        (NO_OVERRIDE, _) => {
            let within = router.layer(ours::layer(HeaderSet::Legacy));
            Side::new(NO_OVERRIDE, Plain, within)
        }
        (TOLLGATE, "route") => ours(router.layer(ours::routes("id"))),
        (TOLLGATE, "route-renamed") => ours(router.layer(ours::routes("item"))),
        (TOLLGATE, "route-outside") => {
            let around = ours::routes("id").layer(router);
            Side::new(TOLLGATE, Plain, around)
        }
        (TOLLGATE, "both") => ours(router.layer(ours::layer(HeaderSet::Both))),
        (TOLLGATE, "denied") => ours(router.layer(ours::denying())),
        (TOLLGATE, "outside") => {
            let around = ours::layer(HeaderSet::None).layer(router);
            Side::new(TOLLGATE, Plain, around)
        }
        (TOLLGATE, "new-outside") => {
            let around = ours::layer(HeaderSet::None).layer(router);
            Side::new(TOLLGATE, New, around)
        }
        (TOLLGATE, "denied-outside") => Side::new(TOLLGATE, Plain, ours::denying().layer(router)),
        (TOLLGATE, "token") => {
            let around = router.layer(ours::three(HeaderSet::Legacy));
            Side::new(TOLLGATE, Token, around)
        }
        (TOLLGATE, "token-both") => {
            let around = router.layer(ours::three(HeaderSet::Both));
            Side::new(TOLLGATE, Token, around)
        }

        (tower_governor::NAME, "plain") => governed(router.layer(tower_governor::layer(AMPLE))),
        (tower_governor::NAME, "headers") => {
            governed(router.layer(tower_governor::with_headers(AMPLE)))
        }
        (tower_governor::NAME, "denied") => {
            governed(router.layer(tower_governor::with_headers(SCARCE)))
        }
        (tower_governor::NAME, "outside") => {
            let around = tower_governor::layer(AMPLE).layer(router);
            Side::new(tower_governor::NAME, Plain, around)
        }
        (tower_governor::NAME, "new") => {
            let within = router.layer(tower_governor::layer(AMPLE));
            Side::new(tower_governor::NAME, New, within)
        }
        (tower_governor::NAME, "new-outside") => {
            let around = tower_governor::layer(AMPLE).layer(router);
            Side::new(tower_governor::NAME, New, around)
        }
        (tower_governor::NAME, "token") => Side::new(
            tower_governor::NAME,
            Token,
            tower_governor::three(router, AMPLE),
        ),

        (axum_governor::NAME, "headers") => {
            let around = router.layer(axum_governor::layer(AMPLE));
            Side::new(axum_governor::NAME, Plain, around)
        }
        (axum_governor::NAME, "denied") => {
            let around = router.layer(axum_governor::layer(SCARCE));
            Side::new(axum_governor::NAME, Plain, around)
        }
        (axum_gcra::NAME, "plain") => {
            let around = axum_gcra::around(axum_gcra::bare(), AMPLE);
            Side::before(axum_gcra::NAME, Plain, around)
        }
        _ => return None,
    })
}

fn ours(router: axum::Router) -> Side {
    Side::new(TOLLGATE, Plain, router)
}

fn governed(router: axum::Router) -> Side {
    Side::new(tower_governor::NAME, Plain, router)
}
