//! Guides. Every example in them is run as a test.
//!
//! | to begin | to go on | to know |
//! |---|---|---|
//! | [Getting started](getting_started) | [Tokens and tiers](tokens_and_tiers) | [Choosing an algorithm](algorithms) |
//! | [Behind a proxy](proxies) | [Every key of a policy file](configuration) | [Security](security) |
//! | [Testing your limits](testing) | [The command line](command_line) | [Questions and answers](faq) |
//! | [Going distributed](distributed) | [Writing a store](writing_a_store) | [The design, and its reasons](design) |
//! | [Moving here from another limiter](migrating) | [Without HTTP](programmatic) | [The others, and when to pick them](compare) |
//! | [Operations](operations) | [Guarantees and their tests](guarantees) | [Performance](performance) |
#![cfg_attr(
    feature = "client",
    doc = "| | [Calling APIs that have limits](client) | |"
)]

macro_rules! guides {
    ($($(#[$more:meta])* $name:ident from $file:literal;)*) => {$(
        #[doc = include_str!($file)]
        $(#[$more])*
        pub mod $name {}
    )*};
}

guides! {
    algorithms from "algorithms.md";
    command_line from "command_line.md";
    #[expect(clippy::doc_markdown, reason = "crates have names, underscores or not")]
    compare from "compare.md";
    configuration from "configuration.md";
    design from "design.md";
    distributed from "distributed.md";
    faq from "faq.md";
    getting_started from "getting_started.md";
    guarantees from "guarantees.md";
    #[expect(clippy::doc_markdown, reason = "crates have names, underscores or not")]
    migrating from "migrating.md";
    operations from "operations.md";
    #[expect(clippy::doc_markdown, reason = "crates have names, underscores or not")]
    performance from "performance.md";
    programmatic from "programmatic.md";
    proxies from "proxies.md";
    security from "security.md";
    testing from "testing.md";
    // The guide is there without the feature, too, and then its links lead next door.
    #[doc = ""]
    #[cfg_attr(
        feature = "jwt",
        doc = "[`Jwt::hs256`]: crate::identity::Jwt::hs256",
        doc = "[`Jwt::rs256_pem`]: crate::identity::Jwt::rs256_pem",
        doc = "[`Jwt::builder`]: crate::identity::Jwt::builder",
        doc = "[`KeySet`]: crate::identity::KeySet"
    )]
    #[cfg_attr(
        not(feature = "jwt"),
        doc = "[`Jwt::hs256`]: crate::identity",
        doc = "[`Jwt::rs256_pem`]: crate::identity",
        doc = "[`Jwt::builder`]: crate::identity",
        doc = "[`KeySet`]: crate::identity"
    )]
    tokens_and_tiers from "tokens_and_tiers.md";
    writing_a_store from "writing_a_store.md";
}

#[cfg(feature = "client")]
#[cfg_attr(docsrs, doc(cfg(feature = "client")))]
#[doc = include_str!("client.md")]
pub mod client {}
